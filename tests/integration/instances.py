"""What an instance has on its machine: processes, containers, cgroups, folders. By this the tests know what is
left behind."""

import glob
import json
import os
import re

from host import account, as_account, instances_dir, is_root, link, read, user_runtime_dir
from stdio_client import children_of, command_line, status_field

CONTROLLERS = ("memory", "pids", "cpu")


def instances_of(pid):
    """The instances of a running server, by the locks that it holds open."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []
    found = (re.fullmatch(r".*/([0-9a-f]{16})/lock", link(f"/proc/{pid}/fd/{number}")) for number in numbers)
    return sorted({each.group(1) for each in found if each})


def instance_of(pid):
    """The instance of a server that has one."""
    return next(iter(instances_of(pid)), None)


def every_process():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def is_zombie(pid):
    return status_field(pid, "State").startswith("Z")


def zombies_of(pid):
    return [child for child in children_of(pid) if is_zombie(child)]


def holds_namespaces(pid):
    """Without an engine's command a server has a process that keeps its namespaces open."""
    return command_line(pid)[:2] == ["flock", "--shared"]


def processes_of(instance, upstreams=True):
    """Processes that belong to an instance, but not its server itself: by command line, working folder,
    cgroup, mounts, and (for MCP servers and what they started) by the mark in their environment. Without
    `upstreams`, none that a server keeps from run to run."""
    found = []
    for pid in every_process():
        if pid == os.getpid() or is_zombie(pid):
            continue
        marked = f"BULKHEAD_CHILD={instance}/" in read(f"/proc/{pid}/environ")
        if not upstreams and (marked or holds_namespaces(pid)):
            continue
        if (marked or instance in " ".join(command_line(pid)) or instance in link(f"/proc/{pid}/cwd") or
                instance in read(f"/proc/{pid}/cgroup") or
                f"/{instance}/ipc" in read(f"/proc/{pid}/mountinfo")):
            found.append(pid)
    return found


def containers_of(instance):
    return as_account("podman", "ps", "-a", "--filter", f"label=org.bulkhead.instance={instance}",
                      "--format", "{{.Names}} {{.Status}}").split("\n")[:-1] + bundles_of(instance)


def bundles_of(instance):
    """Containers that no engine knows, as the OCI runtime has noted them: folders."""
    return glob.glob(f"{instances_dir()}/{instance}/runs/*/oci/*")


def remove_container(listed):
    """Removes what `containers_of` lists, behind the server's back."""
    if not listed.startswith("/"):
        as_account("podman", "rm", "-f", "-t", "0", listed.split()[0], check=False)
        return
    root, name = os.path.split(listed)
    runtime = "runc" if os.path.exists(listed + "/state.json") else "crun"
    as_account(runtime, "--root", root, "delete", "--force", name, check=False)


def oci_folders():
    """Where runc and crun keep what they run."""
    bases = [user_runtime_dir(), f"/run/user/{account().pw_uid}",
             *glob.glob(f"/tmp/*-{account().pw_uid}")]
    return [f"{base}/{name}" for base in dict.fromkeys(bases) for name in ("runc", "crun")
            if base and os.path.isdir(f"{base}/{name}")]


def oci_containers_of(instance):
    """Containers of the OCI runtime, which may have some that podman doesn't list."""
    return [path for folder in oci_folders() for path in glob.glob(f"{folder}/*")
            if instance in read(f"{path}/state.json") + read(f"{path}/status")]


def cgroups_of(instance):
    """An instance's cgroups, which are folders of the account's delegated ones (cgroup v1). Of that in which its
    podman service works only those in it, which are containers'."""
    found = []
    service = {str(pid) for pid in services_of(instance)}
    for controller in CONTROLLERS:
        for path in glob.glob(f"/sys/fs/cgroup/{controller}/**/{instance}-*", recursive=True):
            if service & set(read(f"{path}/cgroup.procs").split()):
                found += [each.rstrip("/") for each in glob.glob(f"{path}/*/")]
            else:
                found.append(path)
    return found


def services_of(instance):
    """podman's services that an instance has started; podman's own processes, not what guards them."""
    return [pid for pid in every_process()
            if f"BULKHEAD_CHILD={instance}/engine" in read(f"/proc/{pid}/environ") and
            os.path.basename((command_line(pid) or [""])[0]) == "podman" and "service" in command_line(pid)]


def run_folders_of(instance):
    return glob.glob(f"{instances_dir()}/{instance}/runs/*")


def leftovers(instance, alive):
    """What an instance still has. `alive`: its server runs, and may have its folder and MCP servers."""
    found = [f"container {line}" for line in containers_of(instance)]
    found += [f"OCI container {path}" for path in oci_containers_of(instance)]
    found += [f"cgroup {path}" for path in cgroups_of(instance)]
    if not alive:
        found += [f"cgroup {path}" for controller in CONTROLLERS
                  for path in glob.glob(f"/sys/fs/cgroup/{controller}/**/{instance}", recursive=True)]
    found += [f"run folder {path}" for path in run_folders_of(instance)]
    found += [f"process {pid} {' '.join(command_line(pid))[:200]}"
              for pid in processes_of(instance, upstreams=not alive)]
    if not alive and os.path.isdir(f"{instances_dir()}/{instance}"):
        found.append(f"folder {instances_dir()}/{instance}")
    return found


def storage_of_account():
    data = "" if is_root() else os.environ.get("XDG_DATA_HOME", "")
    return (data or account().pw_dir + "/.local/share") + "/containers/storage"


def stored_containers():
    """Ids in the engine's storage, by name, whether podman lists them or not."""
    text = read(storage_of_account() + "/overlay-containers/containers.json")
    return {name: entry["id"] for entry in json.loads(text or "[]") for name in entry.get("names", [])}


def orphaned_storage():
    """Stored containers of no living run, and mounts of containers that aren't stored."""
    runs = {os.path.basename(path) for path in glob.glob(f"{instances_dir()}/*/runs/*")}
    stored = stored_containers()
    orphans = {f"stored container {name}" for name in stored
               if name.startswith("bulkhead-") and name[len("bulkhead-"):] not in runs}
    ids = set(stored.values())
    for pid in every_process():
        if command_line(pid)[:2] == ["catatonit", "-P"] and status_field(pid, "Uid").split()[:1] == [
                str(account().pw_uid)]:
            orphans |= {f"mount of container {cid}" for cid in
                        re.findall(r"overlay-containers/([0-9a-f]{64})/", read(f"/proc/{pid}/mountinfo"))
                        if cid not in ids}
    return orphans


def engine_commands(pid):
    """The container commands of runs that a server has running: podman or docker `run`, not a probe's. Of
    podman's two processes the outer one. Without an engine, the OCI runtime while it starts a container, and
    the container's first process from then on."""
    found = []
    for child in children_of(pid):
        words = command_line(child)
        program = os.path.basename(words[0]) if words else ""
        if not is_zombie(child) and (
                program in ("podman", "docker") and "run" in words and "/ipc/entrypoint.py" in words or
                program == "bulkhead-init" and "/ipc/entrypoint.py" in words or
                "--pid-file" in words and "run" in words):
            found.append(child)
    return found


def monitors_of(instance):
    """conmon processes of an instance."""
    return [pid for pid in processes_of(instance)
            if os.path.basename((command_line(pid) or [""])[0]) == "conmon"]


def guests_of(instance):
    """The guests' own processes, as the host sees them."""
    found = [pid for pid in processes_of(instance)
             if command_line(pid)[:1] == ["python3"] and "/ipc/entrypoint.py" in command_line(pid)]
    # A child of a guest's looks like it until it executes its own program.
    return [pid for pid in found if status_field(pid, "PPid") not in map(str, found)]


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}") and not is_zombie(pid)
