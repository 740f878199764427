"""Twenty tenants with five clients each at once, of the official SDKs: nothing is lost, mixed or left."""

import json
import os
import subprocess
import unittest

import npm_clients
from host import patience, wait_until
from http_server import TenantServer
from instances import guests_of, instances_of
from npm_clients import INSTALLED
from world import LONG, World

TENANTS = [f"tenant-{number:02}" for number in range(20)]
# Five clients of each tenant.
FLAVOURS = ("sdk1", "sdk1", "sdk2", "sdk2-modern", "sdk2-modern")
SECONDS = 300 if LONG else 60
LIMITS = """[tenants.{}.limits]
concurrent_runs = 2
sessions = 5
memory = "64m"
requests_per_second = 1000
burst = 1000
"""


def setUpModule():
    npm_clients.install()


class ManyTenants(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.world = World({})
        self.server = TenantServer(self.world, {name: LIMITS.format(name) for name in TENANTS},
                                   "concurrent_runs = 6\n", MCP_BRIDGE_POOL="0")

    def tearDown(self):
        try:
            self.assertEqual(self.server.stop(), 0, self.server.log_text()[-3000:])
            for instance in self.server.instances:
                self.world.assert_clean(instance, alive=False)
        finally:
            self.world.close()

    def start(self, flavour, clients):
        process = subprocess.Popen(["node", os.path.join(INSTALLED, "tenants.mjs"), flavour], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps({"url": self.server.url, "seconds": SECONDS, "clients": clients}))
        process.stdin.close()
        process.stdin = None
        return process

    def guests(self):
        return [pid for instance in instances_of(self.server.process.pid) for pid in guests_of(instance)]

    def test_nothing_is_lost_mixed_or_left(self):
        clients = {}
        for name in TENANTS:
            for flavour in FLAVOURS:
                clients.setdefault(flavour, []).append({"tenant": name, "token": self.server.tokens[name]})
        running = {flavour: self.start(flavour, each) for flavour, each in clients.items()}
        done = vanished = 0
        for flavour, process in running.items():
            out, err = process.communicate(timeout=patience(SECONDS + 240))
            self.assertEqual(process.returncode, 0, err[-3000:])
            report = json.loads(out)
            self.assertEqual((report["wrong"][:2], report["failed"][:2]), ([], []), flavour)
            print(f"\n{flavour}: {report['done']} answers, {report['vanished']} vanished, {report['refused']} put off")
            done += report["done"]
            vanished += report["vanished"]
        self.assertGreater(done, 50)
        self.assertGreater(vanished, 10)
        # What is left are the interpreters that are kept, and those have a limit.
        wait_until(lambda: len(self.guests()) <= 5 * len(TENANTS), 60, "the runs of who vanished are over")
        self.assertEqual(len(self.server.instances), len(TENANTS))
