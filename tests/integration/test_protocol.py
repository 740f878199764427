"""MCP as a client on the other end of the pipe can bend it: both eras, garbage, sizes, ends."""

import json
import subprocess
import threading
import time
import unittest

from host import patience, wait_until
from stdio_client import StdioClient, resident_kib
from world import BINARY, BulkheadTest, World

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {}}
REVISIONS = ("2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


class Messages(BulkheadTest):
    def request(self, method, params=None, meta=None):
        return self.client.request(method, params, meta)

    def error_code(self, reply):
        return reply.message(patience(30))["error"]["code"]

    def errors_without_id(self):
        return [each["error"] for each in self.client.notifications
                if each.get("id", 0) is None and "error" in each]

    def send_raw(self, line):
        """Sends what is no request; the error that comes back."""
        before = len(self.errors_without_id())
        self.client.send_line(line + b"\n")
        wait_until(lambda: len(self.errors_without_id()) > before, 60, "an error comes back")
        return self.errors_without_id()[-1]

    def assert_alive(self):
        self.assertEqual(self.request("ping").result(patience(30)), {})

    def test_garbage(self):
        for line in (b"garbage", b'{"jsonrpc":"2.0","id":1', b"\xff\xfe\x00", b"{]", b"\x00"):
            self.assertEqual(self.send_raw(line)["code"], -32700, line)
        for line in (b"123", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b'{"jsonrpc":"1.0"}'):
            self.assertEqual(self.send_raw(line)["code"], -32600, line)
        self.client.send_line(b"\n \r\n\n")
        self.assert_alive()

    def test_deep_and_wide_messages(self):
        deep = b'{"jsonrpc":"2.0","method":"x","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        wide = b'{"jsonrpc":"2.0","method":"x","params":[' + b"{}," * 2_000_000 + b"{}]}"
        for line in (deep, wide):
            self.assertEqual(self.send_raw(line)["code"], -32600)
        self.assert_alive()

    def test_a_line_of_100_mb(self):
        before = resident_kib(self.client.pid)
        error = self.send_raw(b"x" * 100_000_000)
        self.assertEqual(error["code"], -32600)
        self.assertIn("limit", error["message"])
        self.assertLess(resident_kib(self.client.pid) - before, 100 * 1024)
        self.assert_alive()

    def test_code_at_its_limit(self):
        largest = 4 * 1024 * 1024
        code = "print('ran')\n"
        code += "#" * (largest - len(code))
        self.assertEqual(self.run_well(code)["stdout"], "ran\n")
        answer = self.run_code(code + "#")
        self.assertEqual(answer["status"], "validation_error")

    def test_both_eras_at_once(self):
        self.assertEqual(self.request("server/discover", meta=MODERN).result()["supportedVersions"],
                         ["2026-07-28"])
        modern = self.request("tools/list", meta=MODERN).result()
        legacy = self.request("tools/list").result()
        self.assertEqual(modern["resultType"], "complete")
        self.assertNotIn("resultType", legacy)
        self.assertEqual(modern["tools"], legacy["tools"])
        self.assertEqual(self.error_code(self.request("ping", meta=MODERN)), -32601)
        run = self.client.start_run("print(1)", meta=MODERN).result()
        self.assertEqual((run["resultType"], run["structuredContent"]["stdout"]), ("complete", "1\n"))

    def test_an_unsupported_version(self):
        meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2029-01-01"}
        error = self.request("tools/list", meta=meta).message(patience(30))["error"]
        self.assertEqual(error["code"], -32022)
        self.assertEqual(error["data"], {"supported": ["2026-07-28"], "requested": "2029-01-01"})

    def test_an_id_in_use(self):
        run = self.start("import time\ntime.sleep(60)", timeout=60)
        # Goes by the same number, so the reply is this refusal.
        self.client.send({"jsonrpc": "2.0", "id": run.id, "method": "ping"})
        self.assertEqual(self.error_code(run), -32600)
        self.client.cancel(run)
        self.assert_alive()

    def test_what_a_model_sees_is_small(self):
        tool = self.request("tools/list").result()["tools"][0]
        seen = sum(len(json.dumps(tool[key], ensure_ascii=False, separators=(",", ":")).encode())
                   for key in ("name", "description", "inputSchema"))
        self.assertLessEqual(seen, 1400)


class ManyServers(Messages):
    """Nothing in the protocol depends on how many servers there are."""

    servers = {f"server-{number}": {"command": "/bin/true", "description": "A server. " * 10}
               for number in range(100)}


class Connections(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.close)

    def start(self):
        process = subprocess.Popen([BINARY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=self.world.environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_every_revision(self):
        for revision in REVISIONS:
            with self.subTest(revision), StdioClient([BINARY], env=self.world.environment(),
                                                     handshake=False) as client:
                answer = client.request("initialize", {"protocolVersion": revision, "capabilities": {},
                                                       "clientInfo": {"name": "t", "version": "1"}})
                self.assertEqual(answer.result()["protocolVersion"], revision)
                result = client.start_run("print(1)").result(patience(60))
                self.assertIn("1", result["content"][0]["text"])
                self.assertEqual("structuredContent" in result, revision >= "2025-06-18")

    def test_a_client_that_only_asks(self):
        with StdioClient([BINARY], env=self.world.environment(), handshake=False) as client:
            self.assertEqual(client.run("print(1)", wait=patience(60))["stdout"], "1\n")

    def test_the_last_line_needs_no_newline(self):
        process = self.start()
        answer, _ = process.communicate(b'{"jsonrpc":"2.0","id":"last","method":"ping"}',
                                        timeout=patience(20))
        self.assertEqual(json.loads(answer), {"jsonrpc": "2.0", "id": "last", "result": {}})
        self.assertEqual(process.returncode, 0)

    def test_stdout_carries_messages_only(self):
        requests = b"".join(json.dumps({"jsonrpc": "2.0", "id": number, "method": method}).encode() + b"\n"
                            for number, method in enumerate(("ping", "tools/list", "no/such", "ping")))
        answers, _ = self.start().communicate(requests + b"nonsense\n", timeout=patience(20))
        ids = [json.loads(line)["id"] for line in answers.splitlines()]
        self.assertEqual(ids, [0, 1, 2, 3, None])

    def test_a_client_that_does_not_read(self):
        process = self.start()
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read",
                           "params": {"uri": "bulkhead://capabilities"}}).encode() + b"\n"
        total = 20_000
        sent = 0

        def send():
            nonlocal sent
            for _ in range(total // 100):
                process.stdin.write(line * 100)
                sent += 100

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        # All answers together are some 60 MB; while nobody reads them, the requests aren't read either.
        still = -1
        while still != sent:
            still = sent
            time.sleep(1)
        self.assertLess(sent, total)
        self.assertLess(resident_kib(process.pid), 100 * 1024)
        for _ in range(total):
            self.assertIn(b'"result"', process.stdout.readline())
        sender.join(patience(20))
        process.stdin.close()
        self.assertEqual(process.wait(patience(20)), 0)

    def test_a_client_that_closes_its_end_of_stdout(self):
        process = self.start()
        process.stdout.close()
        for _ in range(3):
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            process.stdin.flush()
        process.stdin.close()
        self.assertEqual(process.wait(patience(20)), 0)


if __name__ == "__main__":
    unittest.main()
