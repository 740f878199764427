"""Bulkhead over HTTP: both eras on one endpoint, with real sandboxes, the official SDKs and the Inspector."""

import resource
import socket
import unittest

import npm_clients
from host import patience, wait_until
from http_server import HttpServer, rpc
from instances import guests_of
from npm_clients import SdkClient, run_inspector
from world import World

LONG_RUN = "import time\nprint('started', flush=True)\ntime.sleep(100)"


def setUpModule():
    npm_clients.install()


def text_of(result):
    return "\n".join(block["text"] for block in result["content"])


class HttpTest(unittest.TestCase):
    """A server over HTTP that ends well, whatever the tests did, and leaves nothing."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"recorder": world.recorder("record")})
        cls.server = HttpServer(cls.world, *cls.arguments)

    @classmethod
    def tearDownClass(cls):
        try:
            status = cls.server.close()
            if status != 0:
                raise AssertionError(f"the server ended with {status}")
            cls.world.assert_clean(cls.server.instance, alive=False)
        finally:
            cls.world.close()

    def guests(self):
        return guests_of(self.server.instance)

    def wait_for_guest(self):
        wait_until(self.guests, 30, "a guest runs")

    def wait_for_no_guest(self):
        wait_until(lambda: not self.guests(), 20, "the guest is gone")


class ModernEra(HttpTest):
    def test_code_runs_and_its_answer_is_plain_json(self):
        answer = self.server.run_modern("print(6 * 7)", id="a")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"))
        response = answer.json()
        self.assertEqual(response["id"], "a")
        self.assertEqual(response["result"]["structuredContent"]["stdout"], "42\n")
        self.assertEqual(response["result"]["resultType"], "complete")

    def test_progress_makes_it_a_stream(self):
        answer = self.server.run_modern("print(1)", id=0, meta={"progressToken": 0})
        self.assertTrue(answer.is_stream)
        self.assertEqual(answer.headers["X-Accel-Buffering"], "no")
        messages = answer.messages()
        self.assertEqual({each["method"] for each in messages[:-1]}, {"notifications/progress"})
        self.assertEqual(messages[-1]["id"], 0)
        self.assertEqual(answer.ids, [])

    def test_closing_the_stream_cancels_that_run_alone(self):
        doomed = self.server.run_modern(LONG_RUN, id=1, meta={"progressToken": 1})
        while "started" not in doomed.next_message()["params"].get("message", ""):
            pass
        other = self.server.run_modern("import time; time.sleep(2); print('unharmed')", id=1, meta={"progressToken": 2})
        other.next_message()
        doomed.close()
        self.assertEqual(other.result()["structuredContent"]["stdout"], "unharmed\n")
        self.wait_for_no_guest()

    def test_a_client_that_vanishes_before_any_answer_cancels_its_run(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        body = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":'
                b'{"code":"import time; time.sleep(100)"},"_meta":{"io.modelcontextprotocol/protocolVersion":'
                b'"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}')
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
                           b"Mcp-Method: tools/call\r\nMcp-Name: run_python\r\n"
                           + f"Authorization: Bearer {self.server.token}\r\n".encode()
                           + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.wait_for_guest()
        connection.close()
        self.wait_for_no_guest()

    def test_interpreters_belong_to_the_principal_not_to_the_connection(self):
        first = self.server.run_modern("x = 20", session="new").result()["structuredContent"]
        again = self.server.run_modern("print(x + 1)", session=first["session"]).result()["structuredContent"]
        self.assertEqual(again["stdout"], "21\n")

    def test_statuses_tell_what_is_wrong(self):
        self.assertEqual(self.server.ask_modern(1, "server/discover").status, 200)
        self.assertEqual(self.server.ask_modern(1, "no/such/method").status, 404)
        self.assertEqual(self.server.ask_modern(1, "tools/list", headers={"Mcp-Method": "ping"}).status, 400)
        for method in ("GET", "DELETE"):
            self.assertEqual(self.server.ask(method, headers={"MCP-Protocol-Version": "2026-07-28"}).status, 405)


class LegacyEra(HttpTest):
    def setUp(self):
        self.session = self.server.open_session()

    def test_a_run_that_lost_its_client_goes_on_and_is_resumed(self):
        answer = self.session.run("import time\nprint('started', flush=True)\ntime.sleep(3)\nprint('done')",
                                  progress="p")
        self.assertTrue(answer.is_stream)
        while "started" not in answer.next_message()["params"].get("message", ""):
            pass
        seen = answer.ids[-1]
        answer.close()
        again = self.session.read(seen)
        self.assertEqual(again.status, 200)
        messages = again.messages()
        self.assertEqual(messages[-1]["id"], 1)
        self.assertEqual(messages[-1]["result"]["structuredContent"]["stdout"], "started\ndone\n")
        # Once more, from the beginning.
        replayed = self.session.read(answer.ids[0]).messages()
        self.assertEqual(replayed[-1], messages[-1])
        self.assertGreater(len(replayed), len(messages))

    def test_cancelling_ends_the_stream_and_the_run(self):
        answer = self.session.run(LONG_RUN, id="long")
        self.wait_for_guest()
        self.assertEqual(self.session.tell("notifications/cancelled", {"requestId": "long"}).status, 202)
        self.assertEqual(answer.messages(), [])
        self.wait_for_no_guest()

    def test_ending_a_session_ends_its_runs(self):
        answer = self.session.run(LONG_RUN)
        self.wait_for_guest()
        self.assertEqual(self.session.end().status, 204)
        self.assertEqual(answer.messages(), [])
        self.wait_for_no_guest()
        gone = self.session.ask(2, "ping")
        self.assertEqual((gone.status, gone.json()["id"]), (404, 2))

    def test_sessions_do_not_know_each_others_requests(self):
        other = self.server.open_session()
        answers = [self.session.run("print('one')", id=1), other.run("print('two')", id=1)]
        self.assertEqual([answer.result()["structuredContent"]["stdout"] for answer in answers],
                         ["one\n", "two\n"])

    def test_what_belongs_to_no_request_comes_by_GET(self):
        stream = self.session.read()
        self.assertTrue(stream.is_stream)
        made = self.session.run("from mcp.runtime import save_file\nsave_file('a.txt', b'x')").result()
        self.assertEqual(made["structuredContent"]["status"], "success", made)
        self.assertEqual(stream.next_message()["method"], "notifications/resources/list_changed")


class Doors(HttpTest):
    def test_without_the_token_nothing_is_answered(self):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {self.server.token}"}):
            answer = self.server.ask(message=rpc(1, "ping", {}), headers=headers, token=False)
            self.assertEqual((answer.status, answer.headers["WWW-Authenticate"][:6]), (401, "Bearer"))

    def test_a_token_in_the_address_opens_nothing(self):
        token = self.server.token
        for target in (f"/mcp?token={token}", f"/mcp?access_token={token}", f"/mcp?authorization=Bearer%20{token}"):
            in_url = self.server.ask(message=rpc(1, "ping", {}), token=False, target=target)
            self.assertEqual(in_url.status, 401, target)
        self.assertEqual(self.server.ask_modern(1, "tools/list").status, 200)

    def test_other_names_and_origins_are_refused(self):
        for headers in ({"Host": "evil.example.com"}, {"Origin": "http://evil.example.com"}):
            self.assertEqual(self.server.ask(message=rpc(1, "ping", {}), headers=headers).status, 403)

    def test_the_token_stays_out_of_the_log(self):
        self.server.ask(message=rpc(1, "ping", {}), headers={"X": self.server.token})
        with open(self.server.log, encoding="utf-8", errors="replace") as log:
            self.assertNotIn(self.server.token, log.read())

    def test_garbage_leaves_the_server_as_it_was(self):
        for garbage in (b"\x00" * 1000, b"GET", b"POST /mcp HTTP/1.1\r\n" + b"A: b\r\n" * 5000,
                        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"):
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                try:
                    connection.sendall(garbage)
                except OSError:
                    pass
        answer = self.server.run_modern("print('alive')").result()
        self.assertEqual(answer["structuredContent"]["stdout"], "alive\n")


class Besieged(HttpTest):
    """Many clients at once that never come to the point."""

    HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n"

    def setUp(self):
        self.attackers = []

    def tearDown(self):
        for each in self.attackers:
            each.close()

    def attack(self, bytes):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=patience(60))
        self.attackers.append(connection)
        connection.sendall(bytes)
        return connection

    def resident(self):
        with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def test_others_are_served_meanwhile_and_memory_is_bounded(self):
        self.assertEqual(self.server.run_modern("print(1)").result()["structuredContent"]["stdout"], "1\n")
        before = self.resident()
        authorized = self.HEAD + f"Authorization: Bearer {self.server.token}\r\n".encode()
        slow = []
        for _ in range(100):
            self.attack(b"")
            slow.append(self.attack(self.HEAD + b"X: "))
        # As many as leave the token's holder something to be served on.
        for _ in range(50):
            self.attack(authorized + b"Content-Length: 16000000\r\n\r\n{")
            self.attack(authorized + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 10_000)
        answer = self.server.run_modern("print('alive')").result()
        self.assertEqual(answer["structuredContent"]["stdout"], "alive\n")
        session = self.server.open_session()
        self.assertEqual(session.ask(1, "ping").status, 200)
        # As much as was sent, and something for each connection; not what they announced.
        self.assertLess(self.resident() - before, 64 << 20)
        # Whoever dawdles over its header is told so, once.
        for each in slow:
            said = b""
            while more := received(each):
                said += more
            self.assertLessEqual(said.count(b"HTTP/1.1 "), 1)
            self.assertTrue(said == b"" or said.startswith(b"HTTP/1.1 408 "), said)


def received(connection):
    """What comes next; empty at the end, however it comes. Fails when nothing does."""
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


class NobodyMayRun(HttpTest):
    arguments = ("--no-runs",)

    def test_without_a_token_no_code_is_run(self):
        answer = self.server.run_modern("print(1)").result()["structuredContent"]
        self.assertEqual(answer["status"], "unavailable")
        self.assertIn("token", answer["error"]["message"])
        self.assertEqual(self.guests(), [])


class SdkTests:
    """What every SDK's client must be able to do."""

    flavour = ()
    version = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = SdkClient(*cls.flavour)
        try:
            cls.connected = cls.client.do("connect", url=cls.server.url, token=cls.server.token)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        try:
            cls.client.close()
        finally:
            super().tearDownClass()

    def test_it_speaks_the_revision(self):
        self.assertEqual(self.connected["version"], self.version)

    def test_code_runs_with_progress(self):
        outcome = self.client.start_run("import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.4)",
                                        progress=True)
        self.assertEqual(outcome.value()["structuredContent"]["stdout"], "0\n1\n2\n")
        self.assertGreater(len(outcome.progress), 1)

    def test_calls_overlap(self):
        outcomes = [self.client.start_run(f"print({i})") for i in range(4)]
        self.assertEqual([each.value()["structuredContent"]["stdout"] for each in outcomes],
                         [f"{i}\n" for i in range(4)])

    def test_an_aborted_call_ends_its_run(self):
        outcome = self.client.start_run("import time; time.sleep(100)")
        self.wait_for_guest()
        self.client.cancel(outcome)
        outcome.error()
        self.wait_for_no_guest()

    def test_code_calls_a_server(self):
        result = self.client.run("print(await mcp_recorder.echo(text='hello'))", servers=["recorder"])
        self.assertEqual(result["structuredContent"]["status"], "success", result)


class Sdk1(SdkTests, HttpTest):
    flavour = ("sdk1",)
    version = "2025-11-25"

    def test_zz_the_session_can_be_ended(self):
        self.client.do("terminate")


class Sdk2Legacy(SdkTests, HttpTest):
    flavour = ("sdk2",)
    version = "2025-11-25"


class Sdk2Modern(SdkTests, HttpTest):
    flavour = ("sdk2", "auto")
    version = "2026-07-28"


class Inspectors(HttpTest):
    arguments = ("--fixtures",)

    def test_inspector_1(self):
        tools = run_inspector(1, self.server.url, "--transport", "http", "--method", "tools/list")
        self.assertIn("run_python", [tool["name"] for tool in tools["tools"]])
        result = run_inspector(1, self.server.url, "--transport", "http", "--method", "tools/call", "--tool-name",
                               "run_python", "--tool-arg", "code=print(6*7)")
        self.assertIn("42", text_of(result))

    def test_inspector_2_in_the_modern_era(self):
        result = run_inspector(2, self.server.url, "--protocol-era", "modern", "--format", "json", "--method",
                               "tools/call", "--tool-name", "run_python", "--tool-args-json",
                               '{"code":"print(6*7)"}')
        self.assertIn("42", str(result))
