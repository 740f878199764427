"""A headless Chromium for the tests: Debian's `chromium`, driven by playwright-core from npm."""

import json
import os
import shutil
import subprocess
import threading

from host import is_root, patience
from npm import installed
from world import BINARY, HERE

SOURCE = os.path.join(HERE, "browser")
LOGS = os.path.join(os.path.dirname(BINARY), "test-logs")


class Browser:
    """Runs JavaScript in Node with Playwright's `page` and `context` at hand."""

    def __init__(self):
        executable = shutil.which("chromium")
        if executable is None:
            raise AssertionError("there is no chromium: install Debian's package of that name (deploy/setup.sh does)")
        folder = installed("test-browser", SOURCE)
        # Node looks for packages beside the script.
        shutil.copy(os.path.join(SOURCE, "driver.mjs"), folder)
        # Chromium has no sandbox of its own for root; all that it opens here is our page on loopback.
        flags = ["--no-sandbox"] if is_root() else []
        self._process = subprocess.Popen(["node", os.path.join(folder, "driver.mjs"), executable, *flags], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.heard = []

    def open(self, **options):
        """A fresh page, with nothing left of earlier ones; the options are those of Playwright's contexts."""
        self.heard = []
        return self._do({"open": options})

    def run(self, code, /, **given):
        """Runs the body of an async function; what it returns. `given` has what it needs from here."""
        return self._do({"run": code, "given": given})

    def screenshot(self, name):
        os.makedirs(LOGS, exist_ok=True)
        path = os.path.join(LOGS, f"{name}.png")
        self.run("await page.screenshot({path: given.path, fullPage: true})", path=path)
        return path

    def close(self):
        try:
            self._process.stdin.close()
            self._process.wait(patience(20))
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()

    def _do(self, command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        watch = threading.Timer(patience(90), self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise AssertionError("the browser ended, or gave no answer within 90 s")
        answer = json.loads(line)
        self.heard += answer["heard"]
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["ok"]
