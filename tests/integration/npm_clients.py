"""MCP clients from npm for the tests: installing them, and driving an SDK's client from Python."""

import json
import os
import shlex
import shutil
import subprocess
import threading

from host import patience, read
from instances import instance_of
from npm import installed
from world import BINARY, HERE

CLIENTS = os.path.join(HERE, "clients")
INSTALLED = os.path.join(os.path.dirname(BINARY), "test-clients")


def install():
    folder = installed("test-clients", CLIENTS)
    # Node looks for packages beside the script.
    for script in ("driver.mjs", "tenants.mjs"):
        shutil.copy(os.path.join(CLIENTS, script), folder)


class Launcher:
    """A script that starts Bulkhead for a world, whatever environment a client gives it, and tells which
    processes it became."""

    def __init__(self, world):
        self.world = world
        self.path = world.path("start-bulkhead")
        self._pids = world.path("pids")
        settings = {name: value for name, value in world.environment().items() if name.startswith("MCP_")}
        lines = ["#!/bin/sh", *(f"export {name}={shlex.quote(value)}" for name, value in settings.items()),
                 f"echo $$ >>{shlex.quote(self._pids)}",
                 f'exec {shlex.quote(BINARY)} "$@" 2>>{shlex.quote(world.path("server.log"))}']
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.chmod(self.path, 0o755)

    def pids(self):
        return [int(line) for line in read(self._pids).split()]

    def running(self):
        """The instances that are alive, also noted in the world for looking after them later."""
        found = [instance for instance in map(instance_of, self.pids()) if instance]
        self.world.instances.extend(each for each in found if each not in self.world.instances)
        return found


class Outcome:
    """What became of an operation."""

    def __init__(self, number):
        self.number = number
        self.progress = []
        self._ready = threading.Event()
        self._message = None

    def put(self, message):
        self._message = message
        self._ready.set()

    @property
    def done(self):
        return self._ready.is_set()

    def message(self, seconds=90):
        if not self._ready.wait(patience(seconds)):
            raise AssertionError(f"the client didn't answer within {seconds} s")
        return self._message

    def value(self, seconds=90):
        message = self.message(seconds)
        if "error" in message:
            raise AssertionError(f"the client reports: {message['error']}")
        return message["ok"]

    def error(self, seconds=90):
        message = self.message(seconds)
        if "error" not in message:
            raise AssertionError(f"no error but: {str(message)[:500]}")
        return message["error"]


class SdkClient:
    """A client of an official SDK in a Node process of its own (clients/driver.mjs)."""

    def __init__(self, *flavour):
        self.logs = []
        self.changes = []
        self.asked = []
        self._outcomes = {}
        self._lock = threading.Lock()
        self.process = subprocess.Popen(["node", os.path.join(INSTALLED, "driver.mjs"), *flavour],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, operation, **fields):
        with self._lock:
            outcome = Outcome(len(self._outcomes) + 1)
            self._outcomes[outcome.number] = outcome
        self.process.stdin.write(json.dumps({"n": outcome.number, "op": operation, **fields}) + "\n")
        self.process.stdin.flush()
        return outcome

    def do(self, operation, **fields):
        return self.start(operation, **fields).value()

    def start_run(self, code, progress=False, meta=None, **arguments):
        return self.start("callTool", name="run_python", arguments={"code": code, **arguments},
                          progress=progress, meta=meta)

    def run(self, code, **arguments):
        return self.start_run(code, **arguments).value()

    def cancel(self, outcome):
        self.do("cancel", call=outcome.number)

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "log" in message:
                self.logs.append(message["log"])
            elif "change" in message:
                self.changes.append(message["change"])
            elif "asked" in message:
                self.asked.append(message["asked"])
            elif "progress" in message:
                self._outcomes[message["call"]].progress.append(message["progress"])
            else:
                self._outcomes[message["n"]].put(message)

    def close(self):
        """Ends the client and its server; the process's exit status."""
        try:
            self.start("close").message(30)
            self.process.stdin.close()
            return self.process.wait(patience(10))
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._reader.join(10)
            self.process.stdout.close()


def run_inspector(version, target, *arguments, seconds=90):
    """Runs the Inspector's command line client; version is 1 or 2, target a launcher or a URL. Its stdout, read as
    JSON."""
    done = subprocess.run(inspector_command(version, target, *arguments), cwd=INSTALLED,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=patience(seconds))
    if done.returncode != 0:
        raise AssertionError(f"the Inspector ended with {done.returncode}: {done.stderr} {done.stdout}")
    return json.loads(done.stdout)


def inspector_command(version, target, *arguments):
    package = os.path.join(INSTALLED, "node_modules", f"inspector-{version}")
    with open(os.path.join(package, "package.json"), encoding="utf-8") as file:
        program = json.load(file)["bin"]["mcp-inspector"]
    return ["node", os.path.join(package, program), "--cli", getattr(target, "path", target), *arguments]
