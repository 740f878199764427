"""How `bulkhead serve` ends things: streams whose token has lost its effect, requests that wait as it stops or lets their
tenant go, and itself, whenever that is asked for."""

import signal
import socket
import threading
import unittest

from host import patience, wait_until
from http_server import TenantServer
from test_serve import SLEEP, ServeTest
from world import World

STUCK = "the actor system doesn't end"


class Streams(ServeTest):
    def test_a_token_that_is_taken_back_ends_its_streams_and_no_other_s(self):
        old = self.server.of("bob")
        his = old.open_session()
        stream = his.read()
        hers = self.ann.open_session()
        her_stream = hers.read()
        listening = old.ask_modern(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        self.assertTrue(listening.is_stream)
        del self.server.tokens["bob"]
        self.server.configure()
        self.assertEqual(stream.messages(), [], "the stream has ended")
        listening.messages()
        self.server.tokens["old bob"] = old.token  # it mustn't be in the log either
        self.assertEqual(his.ask(2, "ping").status, 401)
        # The session is the tenant's, whose other token opens it.
        his.server = self.server.of("bob")
        self.assertEqual(his.ask(3, "ping").status, 200)
        run = hers.run("print('x')", progress=1)
        self.assertEqual(run.result()["structuredContent"]["stdout"], "x\n")
        self.assertEqual(her_stream.status, 200)
        self.assertEqual(hers.ask(4, "ping").status, 200)
        her_stream.close()


class Waiting(ServeTest):
    def waiting_run(self, client):
        """A call whose answer hasn't begun, and how it ends."""
        found = []
        thread = threading.Thread(target=lambda: found.append(client.run_modern(SLEEP)), daemon=True)
        thread.start()
        wait_until(self.guests, 60, "the run goes on")

        def answer():
            thread.join(patience(60))
            self.assertTrue(found, "the call is answered")
            return found[0]
        return answer

    def assert_told(self, answer):
        self.assertEqual(answer.status, 503)
        self.assertIn("Retry-After", answer.headers)
        error = answer.json()["error"]
        self.assertIn("stopping", error["message"])
        self.assertIn("try again later", error["message"].lower())

    def test_whoever_waits_as_the_tenant_goes_is_told(self):
        answer = self.waiting_run(self.bob)
        self.server.tenants = {"ann": ""}
        self.server.configure()
        self.assert_told(answer())
        self.assertEqual(self.bob.ask_modern(1, "tools/list").status, 401)
        self.assertEqual(self.ann.ask_modern(1, "tools/list").status, 200)

    def test_whoever_waits_as_the_server_stops_is_told(self):
        answer = self.waiting_run(self.ann)
        self.server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in self.server.log_text(), 20, "it stops")
        self.server.process.send_signal(signal.SIGTERM)  # what runs isn't waited for
        self.assert_told(answer())


class AtOnce(unittest.TestCase):
    def setUp(self):
        self.world = World({})
        self.addCleanup(self.world.close)

    def test_stopped_right_after_its_start(self):
        server = TenantServer(self.world, {"ann": "", "bob": ""})
        for _ in range(3):
            self.assertEqual(server.stop(), 0)
            server.start()
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=patience(30))
        stream = server.of("ann").open_session().read()
        self.assertEqual(server.stop(), 0)
        stream.messages()
        connection.close()
        self.assertNotIn(STUCK, server.log_text())
        for instance in server.instances:
            self.world.assert_clean(instance, alive=False)

    def refusal(self, more):
        self.world.write_config("bulkhead.toml", more)
        done = self.world.command("serve")
        words = done.stderr.decode()
        self.assertEqual(done.returncode, 1, words)
        self.assertNotIn(STUCK, words)
        return words

    def test_addresses_that_are_taken(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            words = self.refusal(f'listen = "127.0.0.1:{port}"\n[tenants.ann]\ntokens = []\n')
            self.assertIn(f"sport = :{port}", words)
            self.assertIn("bulkhead.toml or --listen", words)
            words = self.refusal(f'listen = "127.0.0.1:0"\n[operator]\nlisten = "127.0.0.1:{port}"\n'
                                 "[tenants.ann]\ntokens = []\n")
            self.assertIn(f"sport = :{port}", words)
            self.assertIn("[operator]", words)
