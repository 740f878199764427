"""All of an account's processes were killed at once, and podman's records outlived them."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from host import SYSTEM_PATH, account, as_account, is_root, patience, read, wait_until
from world import BINARY

CODE = "print('still here')\n"


class LostProcesses(unittest.TestCase):
    """In a runtime folder and store of its own, so that no other container of the account is concerned."""

    def setUp(self):
        self.owner = account()
        self.folder = tempfile.mkdtemp(prefix="bulkhead-lost-")
        for name in ("xdg", "home", "run"):
            os.mkdir(f"{self.folder}/{name}", 0o700)
        store = as_account("podman", "info", "--format", "{{.Store.GraphRoot}}").strip()
        options = as_account("podman", "info", "--format",
                             '{{index .Store.GraphOptions "overlay.mount_program"}}').strip()
        with open(f"{self.folder}/storage.conf", "w", encoding="utf-8") as file:
            file.write(f'[storage]\ndriver = "overlay"\ngraphroot = "{self.folder}/store"\n'
                       f'runroot = "{self.folder}/run"\n'
                       f'[storage.options]\nadditionalimagestores = ["{store}"]\n')
            if options.startswith("map"):
                file.write('[storage.options.overlay]\nmount_program = "/usr/bin/fuse-overlayfs"\n')
        for path, _, files in os.walk(self.folder):
            for name in ("", *files):
                os.chown(os.path.join(path, name), self.owner.pw_uid, self.owner.pw_gid)

    def tearDown(self):
        self.kill_all()
        subprocess.run(self.unshared("rm", "-rf", f"{self.folder}/store", f"{self.folder}/run"),
                       **self.options(), check=False, capture_output=True, timeout=patience(60))
        self.kill_all()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def unshared(*command):
        return ["podman", "unshare", *command]

    def options(self):
        extra = {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []} if is_root() else {}
        return {"env": {"PATH": SYSTEM_PATH, "HOME": f"{self.folder}/home", "LANG": "C.UTF-8",
                        "XDG_RUNTIME_DIR": f"{self.folder}/xdg", "MCP_BRIDGE_POOL": "0", "MCP_BRIDGE_DRIVER": "cli",
                        "CONTAINERS_STORAGE_CONF": f"{self.folder}/storage.conf"},
                "cwd": "/", "stdin": subprocess.DEVNULL, **extra}

    def processes(self):
        """Those that have our runtime folder in their environment, and conmon's containers below them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if f"XDG_RUNTIME_DIR={self.folder}/xdg" in read(f"/proc/{pid}/environ").split("\0"):
                found.append(int(pid))
        return found

    def kill_all(self):
        def none_left():
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not self.processes()
        wait_until(none_left, 20, "all processes with our runtime folder are gone")

    def run_code(self, code):
        file = f"{self.folder}/code.py"
        with open(file, "w", encoding="utf-8") as out:
            out.write(code)
        os.chmod(file, 0o644)
        return subprocess.Popen([BINARY, "run", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **self.options())

    def podman(self):
        return subprocess.run(["podman", "ps"], capture_output=True, text=True, timeout=patience(60), **self.options())

    def test_it_is_mended(self):
        sleeping = self.run_code("import time\nprint('begun', flush=True)\ntime.sleep(100)\n")
        wait_until(lambda: any("conmon" in read(f"/proc/{pid}/cmdline") for pid in self.processes()), 60,
                   "a container runs")
        wait_until(lambda: "Up" in self.podman().stdout, 30, "podman's records say so")
        self.kill_all()
        sleeping.communicate(timeout=patience(30))
        self.assertIn("invalid internal status", self.podman().stderr, "podman is lost")
        after = self.run_code(CODE)
        out, err = after.communicate(timeout=patience(90))
        self.assertEqual((after.returncode, out), (0, "still here\n"), err)
