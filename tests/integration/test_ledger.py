"""The ledger: what ran and which tools were called is told afterwards, and only to the account."""

import csv
import hashlib
import io
import json
import os
import sqlite3
import unittest

from host import account, is_root, patience, wait_until
from world import World

CODE = "print(await mcp_rec.echo(message='hi'))"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Ledger(unittest.TestCase):
    def setUp(self):
        self.world = World(lambda world: {"rec": world.recorder("calls"), "spare": world.recorder("spare")},
                           {"deny": ["rec/fail"]})

    def tearDown(self):
        self.world.close()

    def records(self, *arguments):
        done = self.world.command("ledger", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def run_code(self, code, *arguments, **variables):
        return self.world.command("run", "-", "--server", "rec", *arguments, input=code.encode(), seconds=90,
                                  **variables)

    def test_a_run_and_its_calls(self):
        self.assertEqual(self.run_code(CODE).returncode, 0)
        run, = self.records()
        self.assertEqual((run["outcome"], run["calls"], run["servers"], run["client"], run["code"]),
                         ("success", 1, ["rec"], "bulkhead run", None))
        self.assertEqual((run["codeBytes"], run["codeSha256"]), (len(CODE), sha256(CODE)))
        call, = self.records("--calls")
        self.assertEqual((call["run"], call["server"], call["tool"], call["outcome"]),
                         (run["run"], "rec", "echo", "success"))
        self.assertGreater(call["resultBytes"], 0)
        self.assertEqual(call["arguments"], None)
        path = os.path.join(self.world.state, "ledger.db")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        if is_root():
            self.assertEqual(os.stat(path).st_uid, account().pw_uid)

    def test_how_things_ended(self):
        self.run_code("""
import asyncio
from mcp.runtime import MCPError, call_tool_sync
for tool in ("echo", "fail", "nonsense", "exit"):
    try:
        call_tool_sync("rec", tool, {})
    except MCPError:
        pass
raise ValueError("no")
""")
        self.run_code("await mcp_rec.slow(seconds=60)", "--timeout", str(patience(5)))
        self.assertEqual({run["outcome"]: run["error"] for run in self.records()},
                         {"error": "ValueError", "timeout": "timeout"})
        ended = {call["tool"]: call["outcome"] for call in self.records("--calls")}
        self.assertEqual(ended, {"echo": "success", "fail": "denied", "nonsense": "not_found",
                                 "exit": "server_failed", "slow": "timeout"})
        denied, = self.records("--calls", "--outcome", "denied")
        self.assertIn('deny rule "rec/fail"', denied["rule"])
        self.assertIn("servers.json", denied["rule"])
        first = self.records("--tool", "slow")
        self.assertEqual([run["outcome"] for run in first], ["timeout"])
        self.assertEqual(len(self.records("--calls", "--run", denied["run"][:8])), 4)
        self.assertEqual(len(self.records("--calls", "--limit", "2")), 2)
        self.assertEqual(self.records("--calls", "--server", "spare"), [])
        self.assertEqual(self.records("--since", "2050-01-01"), [])
        self.assertEqual(len(self.records("--since", "1h")), 2)

    def test_texts_on_request(self):
        self.run_code(CODE, MCP_BRIDGE_LEDGER="full")
        self.assertEqual(self.records()[0]["code"], CODE)
        self.assertEqual(json.loads(self.records("--calls")[0]["arguments"]), {"message": "hi"})

    def test_off(self):
        self.run_code(CODE, MCP_BRIDGE_LEDGER="off")
        done = self.world.command("ledger")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"yet", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.world.state, "ledger.db")))

    def test_exports(self):
        self.run_code("""
from mcp.runtime import call_tool_sync
for name in ("=1+1", "x\\x1b]0;t\\x07", "a,\\"b\\""):
    try:
        call_tool_sync("rec", name, {})
    except Exception:
        pass
""")
        text = self.world.command("ledger", "--calls").stdout
        self.assertNotIn(b"\x1b", text)
        self.assertEqual(len(text.splitlines()), 4)
        rows = list(csv.DictReader(io.StringIO(self.world.command("ledger", "--calls", "--csv").stdout.decode())))
        self.assertEqual({row["tool"] for row in rows}, {"'=1+1", "x\\u001b]0;t\\u0007", 'a,"b"'})
        path = os.path.join(self.world.state, "out.csv")
        self.assertEqual(self.world.command("ledger", "--calls", "--export", path).returncode, 0)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(path, encoding="utf-8", newline="") as file:
            self.assertEqual(list(csv.DictReader(file)), rows)
        again = self.world.command("ledger", "--export", path)
        self.assertEqual(again.returncode, 1)
        self.assertIn(b"exists", again.stderr)

    def test_bad_arguments(self):
        for arguments in (["--since", "soon"], ["--limit", "0"], ["--csv", "--json"], ["--runs", "--calls"]):
            with self.subTest(arguments):
                self.assertEqual(self.world.command("ledger", *arguments).returncode, 2)

    def test_it_is_read_without_an_engine(self):
        self.run_code(CODE)
        done = self.world.command("ledger", MCP_BRIDGE_RUNTIME="/nonexistent/podman")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"success", done.stdout)

    def test_a_broken_or_foreign_file_costs_no_run(self):
        path = os.path.join(self.world.state, "ledger.db")
        with open(path, "wb") as file:
            file.write(b"no database " * 1000)
        self.world.settle()
        done = self.run_code(CODE)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"the ledger lost", done.stderr)
        done = self.world.command("ledger")
        self.assertEqual(done.returncode, 1)
        os.unlink(path)
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 99")
        database.close()
        self.world.settle()
        done = self.run_code(CODE)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"later version of Bulkhead", done.stderr)

    def test_several_processes_share_it(self):
        clients = [self.world.client() for _ in range(3)]
        replies = [client.start_run(CODE, ["rec"]) for client in clients for _ in range(3)]
        for reply in replies:
            self.assertEqual(reply.result(patience(90))["structuredContent"]["status"], "success")
        for client in clients:
            self.assertEqual(client.close(patience(20)), 0)
            self.assertNotIn("the ledger lost", self.world.log_of(client))
        self.assertEqual(len(self.records()), 9)
        self.assertEqual(len(self.records("--calls")), 9)
        self.assertEqual({run["client"] for run in self.records()}, {"tests"})

    def test_a_server_tells_as_it_goes(self):
        client = self.world.client()
        answer = client.run("1", ["rec"], wait=patience(90))
        self.assertEqual(answer["status"], "success")
        wait_until(lambda: self.world.command("ledger").returncode == 0, 10,
                   "the run is in the ledger while the server lives")
        self.assertEqual([run["outcome"] for run in self.records()], ["success"])
        cancelled = client.start_run("import time; time.sleep(100)", ["rec"])
        client.cancel(cancelled)
        wait_until(lambda: "cancelled" in {run["outcome"] for run in self.records()}, 30, "the cancelled one, too")
        self.assertEqual(client.close(patience(20)), 0)
