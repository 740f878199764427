"""Packages from npm for the tests. Needs node and npm; what is installed lies beside the program under test and is
kept for the next time."""

import os
import shutil
import subprocess

from host import patience, read
from world import BINARY


def installed(name, source):
    """Installs `source`/package.json into the folder `name`, unless that very text is installed there already;
    the folder's path."""
    folder = os.path.join(os.path.dirname(BINARY), name)
    wanted = read(os.path.join(source, "package.json"))
    stamp = os.path.join(folder, "installed.json")
    if read(stamp) != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        shutil.copy(os.path.join(source, "package.json"), folder)
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock",
                   "--loglevel=error"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=patience(300))
        if done.returncode != 0:
            raise AssertionError(f"npm install failed: {done.stderr[-2000:]}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    return folder
