"""Twenty tenants with several clients each at once, of the official SDKs: nothing is lost, mixed or left, also when the
server is ended, or killed, and started again meanwhile."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest

import npm_clients
from host import patience, wait_until
from http_server import TenantServer, first_line
from instances import guests_of, instances_of, leftovers
from npm_clients import INSTALLED
from world import LONG, World

TENANTS = [f"tenant-{number:02}" for number in range(20)]
# Of each tenant: where the server goes on, and where it doesn't.
FLAVOURS = ("sdk1", "sdk1", "sdk2", "sdk2-modern", "sdk2-modern")
RESTART_FLAVOURS = ("sdk1", "sdk2", "sdk2-modern")
SECONDS = 150 if LONG else 30
RESTARTS = (signal.SIGTERM, signal.SIGKILL) * (4 if LONG else 1)
LIMITS = """[tenants.{}.limits]
concurrent_runs = 2
sessions = 5
memory = "64m"
requests_per_second = 1000
burst = 1000
"""


def setUpModule():
    npm_clients.install()


class SteadyServer(TenantServer):
    """It comes back at the address that it had, and remembers all that it ever was."""

    port = 0

    def start(self):
        with open(self.log, "ab") as log:
            self.process = self.world.start_command("serve", "--listen", f"127.0.0.1:{self.port}",
                                                    stdout=subprocess.PIPE, stderr=log, text=True,
                                                    variables=self.variables)
        self.url = first_line(self)
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.instances = [*getattr(self, "instances", []), *instances_of(self.process.pid)]


class Clients:
    """Many clients of one SDK in a process of their own; see clients/tenants.mjs."""

    def __init__(self, server, flavour, tenants, restarts):
        self.flavour = flavour
        self.answers = 0
        self._last = ""
        self._process = subprocess.Popen(["node", os.path.join(INSTALLED, "tenants.mjs"), flavour],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        plan = {"url": server.url, "timeout": patience(60) * 1000, "restarts": restarts,
                "clients": [{"tenant": name, "token": server.tokens[name]} for name in tenants]}
        self._process.stdin.write(json.dumps(plan) + "\n")
        self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            if line.startswith("answers "):
                self.answers = int(line.split()[1])
            else:
                self._last = line

    def end(self):
        """Tells them to come to an end; what they report then."""
        try:
            self._process.stdin.close()
            self._process.wait(patience(240))
            self._reader.join(patience(10))
            assert self._process.returncode == 0, self._process.stderr.read()[-3000:]
            return json.loads(self._last)
        finally:
            self.kill()

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        self._process.stdout.close()
        self._process.stderr.close()


class ManyTenants(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.world = World({})
        self.clients = []
        self.server = SteadyServer(self.world, {name: LIMITS.format(name) for name in TENANTS},
                                   "concurrent_runs = 6\n", MCP_BRIDGE_POOL="0")

    def tearDown(self):
        try:
            for each in self.clients:
                each.kill()
            self.assertEqual(self.server.stop(), 0, self.server.log_text()[-3000:])
            wait_until(self.is_clean, 120, "what the dead ones left is swept")
            for instance in self.server.instances:
                self.world.assert_clean(instance, alive=False)
        finally:
            self.world.close()

    def is_clean(self):
        """What was killed is looked after only once it has been dead for a while."""
        if not any(leftovers(instance, False) for instance in self.server.instances):
            return True
        self.world.command("doctor", "--sweep", seconds=120)
        return False

    def start(self, flavours, restarts=False):
        for flavour in dict.fromkeys(flavours):
            self.clients.append(Clients(self.server, flavour, TENANTS * flavours.count(flavour), restarts))

    def reports(self):
        """What all report in the end, of whom nobody had a wrong answer, or none."""
        found = {each.flavour: each.end() for each in self.clients}
        for flavour, report in found.items():
            told = {key: value for key, value in report.items() if key not in ("wrong", "failed", "kinds") and value}
            print(f"\n{flavour}: {told}")
            self.assertEqual((report["wrong"][:2], report["failed"][:2]), ([], []), flavour)
        return found

    def guests(self):
        return [pid for instance in instances_of(self.server.process.pid) for pid in guests_of(instance)]

    def test_nothing_is_lost_mixed_or_left(self):
        end = time.monotonic() + SECONDS
        self.start(FLAVOURS)
        self.wait_for_answers(20)
        wait_until(lambda: time.monotonic() > end, SECONDS, "the time is over")
        reports = self.reports().values()
        self.assertGreater(sum(each["vanished"] for each in reports), 0)
        self.assertGreater(sum(each["resumed"] for each in reports), 0)
        self.assertEqual(sum(each["cut"] for each in reports), 0)
        # What is left are the interpreters that are kept, and those have a limit.
        wait_until(lambda: len(self.guests()) <= 5 * len(TENANTS), 60, "the runs of who vanished are over")
        self.assertEqual(len(self.server.instances), len(TENANTS))

    def test_restarts_under_load(self):
        self.start(RESTART_FLAVOURS, restarts=True)
        for how in RESTARTS:
            self.wait_for_answers(10)
            self.assertEqual(self.server.stop(how), 0 if how == signal.SIGTERM else -how, self.server.log_text()[-3000:])
            self.server.start()
        self.wait_for_answers(10)
        reports = self.reports().values()
        self.assertGreater(sum(each["cut"] for each in reports), 0, "there was load when it was ended")
        self.assertGreater(sum(each["lost"] for each in reports), 0, "kept interpreters are lost in words")
        self.assertEqual(len(self.server.instances), len(TENANTS) * (1 + len(RESTARTS)))

    def wait_for_answers(self, count):
        """Waits until each SDK's clients have had so many more."""
        before = [each.answers for each in self.clients]
        wait_until(lambda: all(each.answers >= had + count for each, had in zip(self.clients, before)), 120,
                   f"each SDK's clients get {count} answers")
