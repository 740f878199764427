"""/readyz tells operators what is wrong, while what can be served still is."""

import contextlib
import http.client
import json
import socket
import unittest

from host import as_account, patience, wait_until
from http_server import TenantServer
from world import World

IMAGE = "localhost/bulkhead-test-readiness:latest"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Readiness(unittest.TestCase):
    TENANTS = {"ann": "", "bob": ""}
    MORE = ""

    def setUp(self):
        self.world = World({})
        self.operators = free_port()
        self.server = TenantServer(self.world, self.TENANTS,
                                   self.MORE + f'[operator]\nlisten = "127.0.0.1:{self.operators}"\n')

    def tearDown(self):
        self.server.end_well()

    def ask(self):
        """Status, verdict, and what is wrong, by what it is."""
        address = ("127.0.0.1", self.operators)
        with contextlib.closing(http.client.HTTPConnection(*address, timeout=patience(60))) as connection:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            report = json.loads(answer.read())
        return answer.status, report["status"], {each["what"]: each for each in report["checks"]
                                                 if each["status"] != "ok"}

    def wait_for(self, verdict, *words):
        """Waits until that is the verdict, and the words stand in what is wrong; that."""
        def told():
            status, found, wrong = self.ask()
            text = json.dumps(wrong)
            return found == verdict and all(word in text for word in words) and (status, wrong)
        return wait_until(told, 60, f"/readyz says {verdict}: {words}")


class Definitions(Readiness):
    def test_a_tenant_s_broken_definitions_are_told(self):
        self.wait_for("ok")
        self.world.write_config("tenants/ann/servers.json", '{"mcpServers": {')
        self.world.settle()
        status, wrong = self.wait_for("degraded", "tenants/ann/servers.json")
        self.assertEqual(status, 200)
        self.assertEqual(list(wrong), ["definitions of MCP servers of tenant ann"])
        self.assertIn("bulkhead servers --tenant", json.dumps(wrong))
        self.world.write_config("tenants/ann/servers.json", {"mcpServers": {}})
        self.world.settle()
        self.wait_for("ok")


class Images(Readiness):
    TENANTS = {"ann": f'image = "{IMAGE}"\n', "bob": ""}

    def setUp(self):
        self.give_name()
        self.addCleanup(self.take_name)
        super().setUp()

    def give_name(self):
        as_account("podman", "tag", "localhost/bulkhead-sandbox:latest", IMAGE)

    def take_name(self):
        """This name alone: unless it is told which, podman takes all that an image has."""
        as_account("podman", "untag", IMAGE, IMAGE, check=False)

    def test_an_image_that_is_removed_and_comes_back(self):
        self.wait_for("ok")
        self.take_name()
        status, wrong = self.wait_for("degraded", IMAGE)
        self.assertEqual((status, list(wrong)), (200, ["container runtime of tenant ann"]))
        self.assertIn(f"no run of tenants with the image {IMAGE} can start", self.server.log_text())
        self.assertEqual(self.server.of("bob").run_modern("print(1)").result()["structuredContent"]["stdout"], "1\n")
        self.give_name()
        self.wait_for("ok")
        self.assertEqual(self.server.of("ann").run_modern("print(2)").result()["structuredContent"]["stdout"], "2\n")
        # bob's image is looked at, too, in a container.
        for instance in self.server.instances:
            self.world.assert_clean(instance, alive=True, seconds=30)


class Starts(Readiness):
    TENANTS = {"ann": 'image = "localhost/bulkhead-test-none"\n', "bob": ""}

    def test_what_no_run_can_start_with_is_in_the_log(self):
        wait_until(lambda: "tenant ann: no run can start" in self.server.log_text(), 60, "the image isn't there")
        self.assertIn("localhost/bulkhead-test-none", self.server.log_text())
        self.assertNotIn("tenant bob: no run", self.server.log_text())

    def test_tenants_whom_nothing_lets_in_are_in_the_log(self):
        self.assertNotIn("nobody can use it", self.server.log_text())
        self.assertEqual(self.server.stop(), 0)
        self.world.write_config("bulkhead.toml", 'listen = "127.0.0.1:0"\n[tenants.cid]\n')
        self.world.settle()
        self.server.start()
        self.assertIn("tenants.cid: it has no tokens, so nobody can use it", self.server.log_text())


class Configurations(Readiness):
    def test_a_broken_file_is_told_while_the_old_one_is_served(self):
        self.wait_for("ok")
        self.world.write_config("bulkhead.toml", "tenants = 3 +")
        self.world.settle()
        status, wrong = self.wait_for("degraded", "bulkhead.toml:1")
        self.assertEqual((status, list(wrong)), (200, ["configuration"]))
        self.assertEqual(self.server.of("ann").run_modern("print(1)").result()["structuredContent"]["stdout"], "1\n")
        wait_until(lambda: "stays as it was" in self.server.log_text(), 30, "the log tells")
        self.server.configure()
        self.wait_for("ok")
        wait_until(lambda: "bulkhead.toml can be used again" in self.server.log_text(), 30, "the log tells that, too")


class Issuers(Readiness):
    """Nobody listens where the keys are said to be."""

    MORE = ('[oauth]\nresource = "https://mcp.example.org/mcp"\n[[oauth.issuers]]\nissuer = "http://127.0.0.1:9"\n'
            'jwks_uri = "http://127.0.0.1:9/keys"\ntenant_claim = "team"\nprivate_network = true\n')

    def test_an_issuer_that_cannot_be_reached_is_told(self):
        status, wrong = self.wait_for("degraded", "http://127.0.0.1:9")
        self.assertEqual((status, list(wrong)), (200, ["keys of the issuer http://127.0.0.1:9"]))
        self.assertIn("none of its access tokens is believed", json.dumps(wrong))
