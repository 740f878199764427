"""Real MCP servers over stdio, killed in the middle of a call: the call fails at once and isn't made twice, and the next
one is answered by a server that was started again. (Over HTTP: test_http_upstreams.)"""

import os
import shutil
import signal
import threading
import time
from http.server import ThreadingHTTPServer

from host import patience, read, wait_until
from instances import processes_of
from test_http_upstreams import FAILURE, Slow, node, packages
from world import BulkheadTest


class KilledServers(BulkheadTest):
    @classmethod
    def servers(cls, world):
        cls.interface = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        cls.interface.daemon_threads = True
        cls.interface.asked = 0
        cls.interface.ended = threading.Event()
        threading.Thread(target=cls.interface.serve_forever, daemon=True).start()
        modules = os.path.join(packages(), "node_modules")
        cls.lines = world.path("everything.lines")
        cls.starts = world.path("browser.starts")
        everything = os.path.join(modules, "server-everything", "dist", "index.js")
        context7 = node(os.path.join(modules, "@upstash", "context7-mcp", "dist", "index.js"))
        playwright = node(os.path.join(modules, "@playwright", "mcp", "cli.js"), "--headless", "--isolated",
                          "--executable-path", os.path.join(packages(), "browser.sh"))
        return {"everything": {"command": "/bin/bash",
                               "args": ["-c", f"exec {shutil.which('node')} {everything} < <(tee -a {cls.lines})"]},
                "context7": {"command": context7[0], "args": context7[1:],
                             "env": {"CONTEXT7_API_URL": f"http://127.0.0.1:{cls.interface.server_address[1]}"}},
                "playwright": {"command": playwright[0], "args": playwright[1:],
                               "env": {"STARTS": cls.starts, "HOME": world.folder}}}

    @classmethod
    def tearDownClass(cls):
        cls.interface.ended.set()
        super().tearDownClass()
        cls.interface.shutdown()

    def killed_in_a_call(self, name, program, call, begun, works):
        before = begun()
        reply = self.start(FAILURE.format(call), [name], timeout=100)
        wait_until(lambda: begun() == before + 1, 30, "the call is on its way")
        for pid in processes_of(self.client.instance):
            if program in read(f"/proc/{pid}/cmdline"):
                os.kill(pid, signal.SIGKILL)
        since = time.monotonic()
        answer = self.answer(reply)
        self.assertLess(time.monotonic() - since, patience(10))
        code, _, message = answer["stdout"].partition(" | ")
        self.assertEqual(code, "server_failed", answer)
        self.assertIn(name, message)
        value = self.run_well(works, [name], timeout=100)["stdout"]
        self.assertEqual(begun(), before + 1)
        return value

    def test_everything(self):
        value = self.killed_in_a_call(
            "everything", "server-everything",
            'mcp_servers["everything"]["trigger-long-running-operation"](duration=60, steps=60)',
            lambda: read(self.lines).count('"trigger-long-running-operation"'),
            'print(await mcp_everything.echo(message="again"))')
        self.assertIn("again", value)

    def test_context7(self):
        value = self.killed_in_a_call(
            "context7", "context7-mcp",
            'mcp_servers["context7"]["resolve-library-id"](query="q", libraryName="react")',
            lambda: min(self.interface.asked, 1),
            "from mcp import runtime\nprint(len(await runtime.list_tools('context7')))")
        self.assertEqual(value.strip(), "2")

    def test_playwright(self):
        value = self.killed_in_a_call(
            "playwright", "@playwright/mcp", 'mcp_playwright.browser_navigate(url="http://127.0.0.1:1/")',
            lambda: read(self.starts).count("started"),
            "from mcp import runtime\nprint(len(await runtime.list_tools('playwright')))")
        self.assertGreater(int(value), 15)
