"""The log of a server over HTTP: as JSON, by run, request and trace, and never with a token."""

import json
import unittest

from host import read
from http_server import HttpServer, TenantServer
from world import World

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = PARENT.split("-")[1]
CODE = "print(await mcp_rec.echo(message='hi'))"


def served(**variables):
    """Runs code in both eras and returns the run's world with its log, closed."""
    world = World(lambda world: {"rec": world.recorder("calls")}, **variables)
    server = HttpServer(world)
    try:
        params = {"name": "run_python", "arguments": {"code": CODE, "servers": ["rec"]}}
        answer = server.ask_modern("first", "tools/call", params, headers={"traceparent": PARENT})
        assert answer.result()["structuredContent"]["status"] == "success"
        session = server.open_session()
        assert session.run("raise SystemExit(3)", id="second").result()["isError"]
        # Wrong and repeated tokens, and others in unlikely places.
        assert server.ask(message={}, headers={"Authorization": "Bearer wrong-" + server.token}, token=False).status == 401
        assert server.ask(message={"jsonrpc": "2.0", "id": 1, "method": server.token}).status == 400
        assert server.ask(message=("{" + server.token).encode()).status == 400
        session.end()
    finally:
        status = server.close()
        token, log = server.token, read(server.log)
        world.assert_clean(server.instance, alive=False)
        world.close()
    assert status == 0, status
    return token, log


class JsonLogs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.token, cls.log = served(MCP_BRIDGE_LOG_FORMAT="json", MCP_BRIDGE_LOG_LEVEL="trace")
        cls.lines = [json.loads(line) for line in cls.log.splitlines()]

    def test_each_line_is_an_object_with_time_level_and_message(self):
        self.assertTrue(self.lines)
        for line in self.lines:
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn(line["level"], {"trace", "debug", "info", "warning", "error", "critical"})
            self.assertTrue(line["message"])

    def test_a_run_is_told_at_its_beginning_and_its_end_with_its_ids(self):
        begun = [line for line in self.lines if " begins" in line["message"]]
        ended = [line for line in self.lines if " ended: " in line["message"]]
        self.assertEqual((len(begun), len(ended)), (2, 2), self.log)
        self.assertEqual([line["run"] for line in begun], [line["run"] for line in ended])
        self.assertEqual([line.get("trace_id") for line in begun + ended], [TRACE, None, TRACE, None])
        self.assertIn("success after", ended[0]["message"])
        self.assertIn("error after", ended[1]["message"])
        self.assertEqual(ended[1]["request"], "second")

    def test_no_token_is_in_it(self):
        self.assertGreater(len(self.token), 16)
        self.assertNotIn(self.token, self.log)


class TextLogs(unittest.TestCase):
    def test_runs_are_told_and_no_token(self):
        token, log = served(MCP_BRIDGE_LOG_LEVEL="trace")
        self.assertNotIn(token, log)
        self.assertRegex(log, r"(?m)^\S+ bulkhead info run [0-9a-f]{32} begins.*, trace " + TRACE)
        self.assertRegex(log, r"(?m)^\S+ bulkhead info run [0-9a-f]{32} ended: success after \d+ ms$")


class TenantLogs(unittest.TestCase):
    def test_each_line_about_a_tenant_says_which(self):
        world = World({}, MCP_BRIDGE_LOG_FORMAT="json")
        try:
            server = TenantServer(world, {"ann": "", "bob": ""})
            for name in ("ann", "bob"):
                answer = server.of(name).run_modern("print(1)", id=f"of {name}")
                self.assertEqual(answer.result()["structuredContent"]["stdout"], "1\n")
            self.assertEqual(server.stop(), 0)
            for instance in server.instances:
                world.assert_clean(instance, alive=False)
            lines = [json.loads(line) for line in server.log_text().splitlines()]
            ended = [line for line in lines if " ended: " in line["message"]]
            self.assertEqual([line["tenant"] for line in ended], ["ann", "bob"])
            self.assertTrue(any("tenant" not in line for line in lines), "some are about the whole process")
            for token in server.tokens.values():
                self.assertNotIn(token, server.log_text())
        finally:
            world.close()
