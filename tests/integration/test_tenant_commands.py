"""Commands that look at one tenant of `bulkhead serve`: they show what is its alone."""

import json
import unittest

from host import wait_until
from http_server import TenantServer
from world import World


class TenantCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"operators-own": world.recorder("own")})
        cls.server = TenantServer(cls.world, {"ann": 'tools = ["rec/echo"]\n', "bob": ""})
        definition = {"mcpServers": {"rec": cls.world.recorder("calls")}}
        cls.world.write_config("tenants/ann/servers.json", definition)
        cls.world.settle()
        answer = cls.server.of("ann").run_modern("print('of ann')").result()["structuredContent"]
        cls.status = answer["status"]

    @classmethod
    def tearDownClass(cls):
        try:
            assert cls.server.stop() == 0, cls.server.log_text()[-3000:]
        finally:
            cls.world.close()

    def command(self, *arguments, status=0):
        done = self.world.command(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def test_the_ledger_is_the_tenant_s(self):
        self.assertEqual(self.status, "success")

        def noted():
            done = self.world.command("ledger", "--tenant", "ann", "--json")
            return done.returncode == 0 and json.loads(done.stdout)
        self.assertEqual([run["outcome"] for run in wait_until(noted, 20, "the run is noted")], ["success"])
        shown, said = self.command("ledger", "--tenant", "bob", status=1)
        self.assertEqual(shown, "")
        self.assertIn("tenants/bob", said)
        self.command("ledger", status=1)

    def test_servers_are_those_that_the_tenant_has_and_may_use(self):
        shown, _ = self.command("servers", "--tenant", "ann", "--tools", "--json")
        servers = {each["name"]: each for each in json.loads(shown)["servers"]}
        self.assertEqual(list(servers), ["rec"])
        self.assertEqual({tool["name"] for tool in servers["rec"]["tools"] if tool["allowed"]}, {"echo"})
        shown, _ = self.command("servers", "--tenant", "bob", "--json")
        self.assertEqual(json.loads(shown)["servers"], [])
        shown, _ = self.command("servers", "--json")
        self.assertEqual([each["name"] for each in json.loads(shown)["servers"]], ["operators-own"])

    def test_mistakes(self):
        _, said = self.command("ledger", "--tenant", "an", status=2)
        self.assertIn('did you mean "ann"?', said)
        _, said = self.command("servers", "--tenant", "ann", "--config", self.world.path("none.toml"), status=2)
        self.assertIn("none.toml", said)
        self.world.write_config("more.toml", "[tenants.cid]\n")
        self.world.settle()
        _, said = self.command("servers", "--tenant", "cid", "--config", self.world.path("state/more.toml"), status=2)
        self.assertIn("tenants/cid", said)
        self.assertIn("bulkhead serve", said)
