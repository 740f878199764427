"""What the integration tests share: the program under test, a state folder that its account can read, and a
look at all that must not be left behind. Python's standard library only.

The program is $BULKHEAD_BINARY or build/bulkhead. As root, the program becomes the account `bulkhead`, and so
do the commands that look after it here; otherwise everything is the user's own."""

import glob
import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SUPPORT = os.path.join(HERE, "..", "support")
sys.path.insert(0, SUPPORT)
from stdio_client import (StdioClient, children_of, command_line, open_descriptors,  # noqa: E402, F401
                          resident_kib, status_field)

BINARY = os.path.abspath(os.environ.get("BULKHEAD_BINARY") or
                         os.path.join(HERE, "..", "..", "build", "bulkhead"))
LONG = os.environ.get("BULKHEAD_TEST_LONG") == "1"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CONTROLLERS = ("memory", "pids", "cpu")
POOLED = {"MCP_BRIDGE_POOL": None}  # settings with the pool that users have
PYTHON = "/usr/bin/python3"


def patience(seconds):
    """A deadline meant for an idle machine, longer on one that has other work."""
    return seconds * min(10.0, max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1)))


def wait_until(condition, seconds, what):
    """Waits for a true value and returns it; the last look is after the deadline."""
    deadline = time.monotonic() + patience(seconds)
    while True:
        late = time.monotonic() > deadline
        value = condition()
        if value:
            return value
        if late:
            raise AssertionError(f"not within {seconds} s (times the load): {what}")
        time.sleep(0.02)


def is_root():
    return os.geteuid() == 0


def account():
    return pwd.getpwnam("bulkhead") if is_root() else pwd.getpwuid(os.geteuid())


def user_runtime_dir():
    """XDG_RUNTIME_DIR as the program has it, or empty."""
    return "/run/bulkhead" if is_root() else os.environ.get("XDG_RUNTIME_DIR", "")


def instances_dir():
    base = user_runtime_dir()
    return f"{base}/bulkhead" if base else f"/tmp/bulkhead-{os.geteuid()}"


def as_account(*command, seconds=60, check=True):
    """Runs a command as the account that has the containers; its stdout."""
    owner = account()
    env = {"PATH": SYSTEM_PATH, "HOME": owner.pw_dir, "LANG": "C.UTF-8"}
    if user_runtime_dir():
        env["XDG_RUNTIME_DIR"] = user_runtime_dir()
    extra = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if is_root() else {}
    done = subprocess.run(command, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=patience(seconds), **extra)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}: {done.stderr}")
    return done.stdout


def sub_uid_range():
    """The first sub-uid of the account and how many it has."""
    owner = account()
    with open("/etc/subuid", encoding="utf-8") as file:
        for line in file:
            name, first, count = line.strip().split(":")
            if name in (owner.pw_name, str(owner.pw_uid)):
                return int(first), int(count)
    raise AssertionError(f"{owner.pw_name} has no sub-uids")


def cgroups_are_v1():
    return os.path.isdir("/sys/fs/cgroup/memory")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def inside(name):
    """The text of a program that is meant to run in a sandbox."""
    with open(os.path.join(HERE, "inside", name + ".py"), encoding="utf-8") as file:
        return file.read()


# -- what an instance has --------------------------------------------------------------------------


def instance_of(pid):
    """The instance of a running server, by the lock that it holds open."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return None
    for number in numbers:
        found = re.fullmatch(r".*/([0-9a-f]{16})/lock", link(f"/proc/{pid}/fd/{number}"))
        if found:
            return found.group(1)
    return None


def every_process():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def is_zombie(pid):
    return status_field(pid, "State").startswith("Z")


def zombies_of(pid):
    return [child for child in children_of(pid) if is_zombie(child)]


def processes_of(instance, upstreams=True):
    """Processes that belong to an instance, but not its server itself: by command line, working folder,
    cgroup, mounts, and (for MCP servers and what they started) by the mark in their environment."""
    found = []
    for pid in every_process():
        if pid == os.getpid() or is_zombie(pid):
            continue
        marked = f"BULKHEAD_CHILD={instance}/" in read(f"/proc/{pid}/environ")
        if marked and not upstreams:
            continue
        if (marked or instance in " ".join(command_line(pid)) or instance in link(f"/proc/{pid}/cwd") or
                instance in read(f"/proc/{pid}/cgroup") or
                f"/{instance}/ipc" in read(f"/proc/{pid}/mountinfo")):
            found.append(pid)
    return found


def containers_of(instance):
    return as_account("podman", "ps", "-a", "--filter", f"label=org.bulkhead.instance={instance}",
                      "--format", "{{.Names}} {{.Status}}").split("\n")[:-1]


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
    """An instance's cgroups, which are folders of the account's delegated ones (cgroup v1)."""
    return [path for controller in CONTROLLERS
            for path in glob.glob(f"/sys/fs/cgroup/{controller}/**/{instance}-*", recursive=True)]


def run_folders_of(instance):
    return glob.glob(f"{instances_dir()}/{instance}/runs/*")


def leftovers(instance, alive):
    """What an instance still has. `alive`: its server runs, and may have its folder and MCP servers."""
    found = [f"container {line}" for line in containers_of(instance)]
    found += [f"OCI container {path}" for path in oci_containers_of(instance)]
    found += [f"cgroup {path}" for path in cgroups_of(instance)]
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
    podman's two processes the outer one."""
    found = []
    for child in children_of(pid):
        words = command_line(child)
        if words and os.path.basename(words[0]) in ("podman", "docker") and "run" in words and \
                "/ipc/entrypoint.py" in words and not is_zombie(child):
            found.append(child)
    return found


def monitors_of(instance):
    """conmon processes of an instance."""
    return [pid for pid in processes_of(instance)
            if os.path.basename((command_line(pid) or [""])[0]) == "conmon"]


def guests_of(instance):
    """The guests' own processes, as the host sees them."""
    return [pid for pid in processes_of(instance)
            if command_line(pid)[:1] == ["python3"] and "/ipc/entrypoint.py" in command_line(pid)]


# -- a world for one test class --------------------------------------------------------------------


class World:
    """A folder with a state folder in it, and the servers and commands that use it."""

    def __init__(self, servers=None, rules=None, **variables):
        self.folder = tempfile.mkdtemp(prefix="bulkhead-test-")
        self.state = os.path.join(self.folder, "state")
        self.variables = variables
        self.clients = []
        self.instances = []
        os.mkdir(self.state)
        for path in (os.path.join(SUPPORT, "recording_server.py"),
                     *glob.glob(os.path.join(HERE, "servers", "*.py"))):
            shutil.copy(path, self.folder)
        if servers is not None:
            entries = servers(self) if callable(servers) else servers
            self.write_config("servers.json", {"mcpServers": entries, **({"policy": rules} if rules else {})})
        self.settle()

    def settle(self):
        """Gives everything in the folder to the account."""
        owner = account()
        for path, folders, files in os.walk(self.folder):
            for name in [path] + [os.path.join(path, each) for each in folders + files]:
                if is_root():
                    os.chown(name, owner.pw_uid, owner.pw_gid)
                mode = os.lstat(name).st_mode
                if not stat.S_ISLNK(mode):
                    os.chmod(name, 0o755 if stat.S_ISDIR(mode) else 0o644)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_config(self, name, content):
        """Writes a file of the state folder: an object, or a text as it is."""
        with open(os.path.join(self.state, name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def recorder(self, record, **env):
        """The entry of a server that notes the tool calls it gets in a file of the folder."""
        return {"command": PYTHON, "args": [self.path("recording_server.py")],
                "env": {"RECORD": self.path(record), **env}}

    def odd_server(self, *behaviours, **more):
        """The entry of a server with peculiarities (servers/odd_server.py)."""
        return {"command": PYTHON, "args": [self.path("odd_server.py"), *behaviours], **more}

    def recorded(self, record):
        return [json.loads(line) for line in read(self.path(record)).splitlines()]

    def environment(self, **variables):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("MCP_") and name != "BULKHEAD_DEPTH"}
        # A timeout longer than any deadline here: what should have ended must not pass by ending later.
        # No pool: whoever looks for what a run left must not find the next run's sandbox (see POOLED).
        env.update({"MCP_BRIDGE_STATE_DIR": self.state, "MCP_BRIDGE_LOG_LEVEL": "info",
                    "MCP_BRIDGE_TIMEOUT": "110", "MCP_BRIDGE_POOL": "0"})
        env.update(self.variables)
        env.update(variables)
        return {name: value for name, value in env.items() if value is not None}

    def client(self, *arguments, **variables):
        """Starts a stdio server; its log goes to a file of the folder."""
        log = self.path(f"server-{len(self.clients)}.log")
        client = StdioClient([BINARY, *arguments], env=self.environment(**variables), stderr=log)
        self.clients.append(client)
        # The lock is taken after the account has changed; the answer to initialize comes later still.
        client.instance = instance_of(client.pid)
        assert client.instance, "the server holds no lock"
        self.instances.append(client.instance)
        return client

    def command(self, *arguments, input=None, seconds=60, **variables):
        """Runs `bulkhead …` to its end."""
        return subprocess.run([BINARY, *arguments], env=self.environment(**variables), cwd=self.folder,
                              input=input, stdin=subprocess.DEVNULL if input is None else None,
                              capture_output=True, timeout=patience(seconds))

    def start_command(self, *arguments, **options):
        variables = options.pop("variables", {})
        return subprocess.Popen([BINARY, *arguments], env=self.environment(**variables),
                                cwd=self.folder, **{"stdin": subprocess.DEVNULL, **options})

    def log_of(self, client):
        return read(client.stderr_path)

    def assert_clean(self, instance, alive, seconds=5):
        """An instance has nothing any more, at once."""
        try:
            wait_until(lambda: not leftovers(instance, alive), seconds, "nothing is left")
        except AssertionError as late:
            left = leftovers(instance, alive)
            if left:
                raise AssertionError(f"{late}; still there: " + "; ".join(left)) from None

    def close(self):
        for client in self.clients:
            client.close()
        try:
            shutil.rmtree(self.folder)
        except OSError:
            # What a guest made with a mode of its own belongs to a sub-uid.
            as_account("podman", "unshare", "rm", "-rf", self.folder, check=False)
            shutil.rmtree(self.folder, ignore_errors=True)


_rows = {}


def constraint_rows(world):
    """What doctor says of a world's settings, by name; asked once."""
    key = json.dumps(world.variables, sort_keys=True)
    if key not in _rows:
        done = world.command("doctor", "--json", seconds=120)
        _rows[key] = {row["name"]: row for row in json.loads(done.stdout)["constraints"]}
    return _rows[key]


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}") and not is_zombie(pid)


class BulkheadTest(unittest.TestCase):
    """Tests that share one server. Subclasses say what it is configured with."""

    servers = {}
    rules = None
    variables = {}

    @classmethod
    def setUpClass(cls):
        servers = cls.servers if not callable(cls.servers) else lambda world: cls.servers(world)
        cls.world = World(servers, cls.rules, **cls.variables)
        cls.client = cls.world.client()

    @classmethod
    def tearDownClass(cls):
        """Whatever the tests did, the server ends well and leaves nothing."""
        try:
            if cls.client.process.poll() is not None:
                raise AssertionError(f"the server died: {cls.client.process.poll()}: "
                                     f"{cls.world.log_of(cls.client)[-2000:]}")
            status = cls.client.close(patience(10))
            if status != 0:
                raise AssertionError(f"the server ended with {status}")
            for instance in cls.world.instances:
                cls.world.assert_clean(instance, alive=False)
        finally:
            cls.world.close()

    def start(self, code, servers=(), timeout=None, client=None):
        return (client or self.client).start_run(textwrap.dedent(code), servers, timeout)

    def answer(self, reply, wait=90):
        """The structured content of a run that was started."""
        return reply.result(patience(wait))["structuredContent"]

    def run_code(self, code, servers=(), timeout=None, client=None):
        return self.answer(self.start(code, servers, timeout, client))

    def run_well(self, code, servers=(), timeout=None, client=None):
        answer = self.run_code(code, servers, timeout, client)
        self.assert_success(answer)
        return answer

    def assert_success(self, answer):
        self.assertEqual((answer["status"], answer.get("exitCode")), ("success", 0), answer)

    def holds(self, constraint):
        """True where the host enforces a limit, so that it can be tried. Where it can't be enforced (an account
        without delegated cgroups), that has to be said, with the remedy, and refused when asked to be strict."""
        row = constraint_rows(self.world)[constraint]
        if row["held"]:
            return True
        self.assertTrue(row["remedy"], row)
        self.assertIn("isn't enforced", self.world.log_of(self.client))
        strict = self.world.client(MCP_BRIDGE_STRICT="1")
        answer = strict.run("print(1)", wait=patience(90))
        self.assertEqual(answer["status"], "unavailable", answer)
        self.assertIn("MCP_BRIDGE_STRICT", answer["error"]["message"])
        self.assertEqual(strict.close(patience(20)), 0)
        return False

    def assert_still_serves(self, client=None):
        self.assertEqual(self.run_well("print('alive')", client=client)["stdout"], "alive\n")

    def assert_nothing_left(self, client=None):
        """No run has left anything, though the server lives on."""
        self.world.assert_clean((client or self.client).instance, alive=True)
