"""Tells from inside a container which constraints really hold (for the host's probe and doctor).

Commands come one a line on stdin; each is answered by one line of JSON. `memory` and `pids` use
resources up on purpose: the first is expected to end in the container's death.
"""

import errno
import json
import os
import resource
import socket
import sys

CGROUP = "/sys/fs/cgroup"
LIMIT_FILES = {
    "memory": ("memory.max", "memory/memory.limit_in_bytes"),
    "swap": ("memory.swap.max",),
    "memsw": ("memory/memory.memsw.limit_in_bytes",),
    "pids": ("pids.max", "pids/pids.max"),
    "cpu": ("cpu.max",),
    "quota": ("cpu/cpu.cfs_quota_us", "cpu,cpuacct/cpu.cfs_quota_us"),
    "period": ("cpu/cpu.cfs_period_us", "cpu,cpuacct/cpu.cfs_period_us"),
}
FOLDERS = ("/", "/run", "/var/tmp", "/var", "/etc", "/usr", "/home", "/root", "/dev", "/ipc", "/projects",
           "/tmp", "/workspace", "/dev/shm", "/sys/fs/cgroup")
AF_VSOCK = 40
PR_GET_NO_NEW_PRIVS = 39
ULIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "fsize": resource.RLIMIT_FSIZE,
    "core": resource.RLIMIT_CORE,
}


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def limits():
    found = {}
    for name, files in LIMIT_FILES.items():
        texts = (read(os.path.join(CGROUP, file)) for file in files)
        text = next((text for text in texts if text is not None), None)
        found[name] = text.strip() if text is not None else None
    return found


def status():
    wanted = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    fields = (line.partition(":") for line in (read("/proc/self/status") or "").splitlines())
    found = {name: value.strip() for name, _, value in fields if name in wanted}
    if "NoNewPrivs" not in found:
        # gVisor doesn't list it.
        found["NoNewPrivs"] = str(no_new_privileges())
    return found


def no_new_privileges():
    import ctypes

    return ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)


def mounts():
    found = {}
    for line in (read("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        target = fields[4]
        # The options of the mount point and of the file system behind it; a later mount hides an earlier one.
        options = sorted(set(fields[5].split(",")) | {o for o in tail[2].split(",") if o == "ro"})
        found[target] = {"type": tail[0], "options": options}
        try:
            space = os.statvfs(target)
            found[target]["size"] = space.f_blocks * space.f_frsize
        except OSError:
            pass
    return found


def outcome(action):
    """"ok", or the name of the errno the kernel answered."""
    try:
        action()
    except OSError as failure:
        return errno.errorcode.get(failure.errno, str(failure.errno))
    return "ok"


def write_into(folder):
    path = os.path.join(folder, ".bulkhead-probe")

    def attempt():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(path)

    return outcome(attempt)


def run_program_in(folder):
    """Starts a program that lies in a writable folder: noexec answers EACCES."""
    path = os.path.join(folder, ".bulkhead-probe")

    def attempt():
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        try:
            os.chmod(path, 0o700)
            child = os.posix_spawn(path, [path], {})
            os.waitpid(child, 0)
        finally:
            os.unlink(path)

    return outcome(attempt)


def kernel_calls():
    """Calls that only our seccomp profile blocks, beside those that any profile does."""
    return {
        "socket(AF_NETLINK)": outcome(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()),
        "socket(AF_PACKET)": outcome(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
        "socket(AF_VSOCK)": outcome(lambda: socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()),
        "chroot": outcome(lambda: os.chroot("/")),
    }


def facts():
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "status": status(),
        "interfaces": sorted(name for name in os.listdir("/sys/class/net")) if os.path.isdir(
            "/sys/class/net") else [],
        "routes": max(0, len((read("/proc/net/route") or "").splitlines()) - 1),
        "mounts": mounts(),
        "writable": {folder: write_into(folder) for folder in FOLDERS if os.path.isdir(folder)},
        "programs": {folder: run_program_in(folder) for folder in ("/tmp", "/workspace", "/dev/shm")},
        "calls": kernel_calls(),
        "ulimits": {name: resource.getrlimit(number)[1] for name, number in ULIMITS.items()},
        "environment": sorted(os.environ),
        "init": (read("/proc/1/cmdline") or "").split("\0")[0],
        "limits": limits(),
    }


def take_memory(amount):
    held = []
    step = 1 << 20
    for _ in range(0, amount, step):
        held.append(b"\x01" * step)
    return {"survived": len(held) * step}


def take_pids(amount):
    import threading

    threading.stack_size(64 << 10)
    over = threading.Event()
    threads = []
    try:
        for _ in range(amount):
            thread = threading.Thread(target=over.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        pass
    over.set()
    for thread in threads:
        thread.join()
    return {"started": len(threads), "asked": amount}


def main():
    commands = {
        "limits": lambda argument: limits(),
        "facts": lambda argument: facts(),
        "memory": lambda argument: take_memory(int(argument)),
        "pids": lambda argument: take_pids(int(argument)),
    }
    print(json.dumps({"ready": ".".join(map(str, sys.version_info[:3]))}), flush=True)
    for line in sys.stdin:
        name, _, argument = line.strip().partition(" ")
        print(json.dumps(commands[name](argument)), flush=True)


if __name__ == "__main__":
    main()
