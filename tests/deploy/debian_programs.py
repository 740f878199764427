"""Programs of Debian packages that are used by tests alone, and so aren't installed: unpacked beside the program under
test, and kept for the next time."""

import glob
import os
import shutil
import subprocess

import places  # noqa: F401 (the paths)
from host import SYSTEM_PATH, is_root, patience
from world import BINARY


def apt_get(folder, *arguments):
    return subprocess.run(["apt-get", "-qq", *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, env={**os.environ, "PATH": SYSTEM_PATH, "LC_ALL": "C"}, timeout=patience(120))


def program(package, path, wanted=os.X_OK):
    """The program (or file) `path` of a package: the machine's own if it is installed, else unpacked."""
    if os.access(path, wanted):
        return path
    folder = os.path.join(os.path.dirname(BINARY), "debian-programs", package)
    found = os.path.join(folder, path.lstrip("/"))
    if os.access(found, wanted):
        return found
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    done = apt_get(folder, "download", package)
    if done.returncode != 0 and is_root():
        # The lists may be too old, or not there.
        apt_get(folder, "update")
        done = apt_get(folder, "download", package)
    if done.returncode != 0:
        raise AssertionError(f"apt-get download {package} failed: {done.stderr}; as root, run apt-get update")
    for archive in glob.glob(os.path.join(folder, "*.deb")):
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True, timeout=patience(60))
        os.remove(archive)
    if not os.access(found, wanted):
        raise AssertionError(f"the package {package} has no {path}")
    return found
