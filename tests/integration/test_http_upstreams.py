"""MCP servers that are reached over HTTP: real ones from npm, killed and started again in the middle of calls."""

import json
import os
import shutil
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from host import SYSTEM_PATH, patience, read, wait_until
from npm import installed
from web_program import NotingProxy, WebProgram
from world import HERE, BulkheadTest

FAILURE = """
from mcp.runtime import MCPError
try:
    print("value", await {})
except MCPError as e:
    print(e.code, "|", e.message)
"""


def packages():
    source = os.path.join(HERE, "web_servers")
    folder = installed("test-web-servers", source)
    for name in ("modern.mjs", "browser.sh"):
        shutil.copy(os.path.join(source, name), folder)
    return folder


def node(*arguments):
    return [shutil.which("node"), *arguments]


class HttpTest(BulkheadTest):
    """Subclasses have `programs`, by name."""

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            for program in cls.programs.values():
                program.kill()

    def failure(self, expression, servers):
        code, _, message = self.run_well(FAILURE.format(expression), servers, timeout=100)["stdout"].partition(" | ")
        return code, message

    def killed_in_a_call(self, name, call, works, begun):
        """A server that dies in a call fails it at once; once it runs again, the next call works, and no call was made
        twice. `begun()` counts the calls that the server has begun."""
        program = self.programs[name]
        before = begun()
        reply = self.start(FAILURE.format(call), [name], timeout=100)
        wait_until(lambda: begun() == before + 1, 30, "the call is on its way")
        program.kill()
        since = time.monotonic()
        answer = self.answer(reply)
        self.assert_success(answer)
        self.assertLess(time.monotonic() - since, patience(10))
        code, _, message = answer["stdout"].partition(" | ")
        self.assertEqual(code, "server_failed", answer)
        self.assertIn(name, message)
        # Gone, it is told so.
        code, message = self.failure(works, [name])
        self.assertEqual(code, "server_failed", message)
        program.start()
        value = self.run_well(f"print(await {works})", [name], timeout=100)["stdout"]
        self.assertEqual(begun(), before + 1)
        return value


class Everything(HttpTest):
    """server-everything by both transports of its time, each behind a proxy that notes what passes."""

    programs = {}
    SLOW = 'mcp_servers["{}"]["trigger-long-running-operation"](duration=60, steps=60)'

    @classmethod
    def servers(cls, world):
        program = os.path.join(packages(), "node_modules", "server-everything", "dist", "index.js")
        entries = {}
        cls.proxies = {}
        for name, mode, path in (("streams", "streamableHttp", "/mcp"), ("events", "sse", "/sse")):
            cls.programs[name] = WebProgram(node(program, mode), world.path(name + ".log"), PATH=SYSTEM_PATH).start()
            cls.proxies[name] = NotingProxy(cls.programs[name].port)
            entries[name] = {"url": f"http://127.0.0.1:{cls.proxies[name].port}{path}",
                             "headers": {"X-Team": "${TEAM:-blue}"}}
        entries["named-events"] = {"type": "sse", "url": f"http://127.0.0.1:{cls.programs['events'].port}/sse"}
        return entries

    def test_calls_over_each_transport(self):
        for name in ("streams", "events", "named-events"):
            with self.subTest(name):
                answer = self.run_well(f"""
                    import asyncio
                    server = mcp_servers["{name}"]
                    sums = await asyncio.gather(*[server["get-sum"](a=40, b=n) for n in range(10)])
                    image = await server["get-tiny-image"]()
                    print(sums[2], "image/png" in str(image))
                    """, [name], timeout=100)
                self.assertIn("42", answer["stdout"])
                self.assertIn("True", answer["stdout"])

    def test_progress_keeps_coming(self):
        answer = self.run_well("""
            print(await mcp_streams["trigger-long-running-operation"](duration=2, steps=4))
            """.replace("mcp_streams", 'mcp_servers["streams"]'), ["streams"], timeout=100)
        self.assertIn("completed", answer["stdout"])

    def test_headers_of_the_configuration_go_with_every_request(self):
        self.run_well('print(await mcp_streams.echo(message="x"))', ["streams"])
        for _, _, headers in self.proxies["streams"].seen:
            self.assertEqual({key.lower(): value for key, value in headers.items()}["x-team"], "blue")

    def test_streams_killed_in_a_call(self):
        value = self.killed_in_a_call("streams", self.SLOW.format("streams"), 'mcp_streams.echo(message="again")',
                                      lambda: self.slow_calls("streams"))
        self.assertIn("again", value)

    def test_events_killed_in_a_call(self):
        value = self.killed_in_a_call("events", self.SLOW.format("events"), 'mcp_events.echo(message="again")',
                                      lambda: self.slow_calls("events"))
        self.assertIn("again", value)

    def slow_calls(self, name):
        return self.proxies[name].slow

    def test_the_tools_are_shown(self):
        done = self.world.command("servers", "--tools", "--json", seconds=90)
        shown = {each["name"]: each for each in json.loads(done.stdout)["servers"]}
        for name in ("streams", "events"):
            self.assertGreater(len(shown[name]["tools"]), 10, done.stderr)


class Modern(HttpTest):
    """A server of 2026-07-28 alone."""

    programs = {}

    @classmethod
    def servers(cls, world):
        cls.log = world.path("modern.log")
        cls.programs["modern"] = WebProgram(node(os.path.join(packages(), "modern.mjs")), cls.log,
                                            PATH=SYSTEM_PATH).start()
        return {"modern": {"url": f"http://127.0.0.1:{cls.programs['modern'].port}/mcp"}}

    def test_calls(self):
        answer = self.run_well('print(await mcp_modern.echo(message="hällo"))', ["modern"])
        self.assertIn("hällo", answer["stdout"])
        self.assertIn("2026-07-28", self.world.log_of(self.client))

    def test_killed_in_a_call(self):
        value = self.killed_in_a_call("modern", "mcp_modern.wait(seconds=60)", 'mcp_modern.echo(message="again")',
                                      lambda: read(self.log).count("waiting"))
        self.assertIn("again", value)


class Slow(BaseHTTPRequestHandler):
    """An interface that never answers, on which context7 waits."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.asked += 1
        self.server.ended.wait(120)


class Others(HttpTest):
    """context7 and Playwright's server, over HTTP. Neither has what it wants (a network, a browser): the one waits for
    an answer, the other for a browser that does nothing."""

    programs = {}

    @classmethod
    def servers(cls, world):
        cls.interface = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        cls.interface.daemon_threads = True
        cls.interface.asked = 0
        cls.interface.ended = threading.Event()
        threading.Thread(target=cls.interface.serve_forever, daemon=True).start()
        modules = os.path.join(packages(), "node_modules")
        context7 = os.path.join(modules, "@upstash", "context7-mcp", "dist", "index.js")
        playwright = os.path.join(modules, "@playwright", "mcp", "cli.js")
        cls.starts = world.path("browser.starts")
        cls.programs["context7"] = WebProgram(
            node(context7, "--transport", "http", "--port", "{port}"), world.path("context7.log"), PATH=SYSTEM_PATH,
            CONTEXT7_API_URL=f"http://127.0.0.1:{cls.interface.server_address[1]}").start()
        cls.programs["playwright"] = WebProgram(
            node(playwright, "--port", "{port}", "--headless", "--isolated",
                 "--executable-path", os.path.join(packages(), "browser.sh")),
            world.path("playwright.log"), PATH=SYSTEM_PATH, HOME=world.folder, STARTS=cls.starts).start()
        # Playwright's server answers to no other name.
        return {name: {"url": f"http://localhost:{program.port}/mcp"} for name, program in cls.programs.items()}

    @classmethod
    def tearDownClass(cls):
        cls.interface.ended.set()
        super().tearDownClass()
        cls.interface.shutdown()

    def test_tools_are_listed(self):
        answer = self.run_well("""
            from mcp import runtime
            for name in ("context7", "playwright"):
                print(name, len(await runtime.list_tools(name)))
            """, ["context7", "playwright"], timeout=100)
        found = dict(line.split() for line in answer["stdout"].splitlines())
        self.assertEqual(int(found["context7"]), 2)
        self.assertGreater(int(found["playwright"]), 15)

    def test_context7_killed_in_a_call(self):
        from_tools = 'mcp_servers["context7"]["resolve-library-id"](query="q", libraryName="react")'
        program = self.programs["context7"]
        before = self.interface.asked
        reply = self.start(FAILURE.format(from_tools), ["context7"], timeout=100)
        wait_until(lambda: self.interface.asked > before, 30, "the call is on its way")
        program.kill()
        code, _, message = self.answer(reply)["stdout"].partition(" | ")
        self.assertEqual(code, "server_failed", message)
        program.start()
        answer = self.run_well("from mcp import runtime\nprint(len(await runtime.list_tools('context7')))",
                               ["context7"], timeout=100)
        self.assertEqual(answer["stdout"].strip(), "2")

    def test_playwright_killed_in_a_call(self):
        program = self.programs["playwright"]
        reply = self.start(FAILURE.format('mcp_playwright.browser_navigate(url="http://127.0.0.1:1/")'),
                           ["playwright"], timeout=100)
        wait_until(lambda: read(self.starts), 30, "the call is on its way")
        program.kill()
        code, _, message = self.answer(reply)["stdout"].partition(" | ")
        self.assertEqual(code, "server_failed", message)
        program.start()
        answer = self.run_well("from mcp import runtime\nprint(len(await runtime.list_tools('playwright')))",
                               ["playwright"], timeout=100)
        self.assertGreater(int(answer["stdout"]), 15)


class Sessions(HttpTest):
    """What is begun is ended."""

    programs = {}

    @classmethod
    def servers(cls, world):
        program = os.path.join(packages(), "node_modules", "server-everything", "dist", "index.js")
        cls.programs["everything"] = WebProgram(node(program, "streamableHttp"), world.path("everything.log"),
                                                PATH=SYSTEM_PATH).start()
        cls.proxy = NotingProxy(cls.programs["everything"].port)
        return {"everything": {"url": f"http://127.0.0.1:{cls.proxy.port}/mcp"}}

    def test_a_session_is_ended_with_its_client(self):
        client = self.world.client()
        self.run_well('print(await mcp_everything.echo(message="x"))', ["everything"], client=client)
        self.assertEqual(client.close(patience(20)), 0)
        ends = [headers for method, _, headers in self.proxy.seen if method == "DELETE"]
        self.assertEqual(len(ends), 1)
        self.assertTrue({key.lower() for key in ends[0]} >= {"mcp-session-id"})

    def test_one_session_however_many_runs(self):
        before = sum(method == "initialize" for _, method, _ in self.proxy.seen)
        for _ in range(3):
            self.run_well('print(await mcp_everything.echo(message="x"))', ["everything"])
        self.assertEqual(sum(method == "initialize" for _, method, _ in self.proxy.seen), before + 1)
