"""The machine that the tests run on: the account that the program works as, processes, files, and waiting."""

import os
import pwd
import subprocess
import time

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


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
