"""Tool calls: proxies, values, errors, and the helpers of mcp.runtime."""
import textwrap
import unittest

from fake_host import DISCOVERED, GUEST, SERVERS, GuestTest, Refusal, echo, text_result

TOOLS = [{"name": "read", "alias": "read", "inputSchema": {"type": "object"}},
         {"name": "list-all", "alias": "list_all", "inputSchema": {"type": "object"}}]


def metadata(payload):
    if payload["type"] == "list_tools":
        return TOOLS
    if payload["type"] == "list_servers":
        return SERVERS
    if payload["type"] == "call_tool":
        return text_result("called " + payload["tool"])
    if payload["type"] == "search_tool_docs":
        return {"tools": [payload]}
    return [payload]


class Proxies(GuestTest):
    def test_every_way_to_name_a_tool(self):
        run = self.run_code("""
            from mcp.servers import files
            import mcp.servers.my_server as mine
            import mcp
            calls = [
                mcp_files.read(path="x"),
                mcp_servers["files"].read({"path": "x"}),
                mcp_servers["my-server"]["list-all"](),
                mcp_servers["my_server"].list_all(),
                getattr(mcp_files, "odd name")(),
                files.read({"a": 1}, b=2),
                mine._private(),
                mcp.servers.files.read(),
                mcp.runtime.call_tool(mcp_files, "read"),
            ]
            [(call["server"], call["tool"], call["arguments"]) for call in calls]
            """, echo)
        self.assert_ok(run)
        self.assertEqual(run.value, [
            ["files", "read", {"path": "x"}], ["files", "read", {"path": "x"}],
            ["my-server", "list-all", {}], ["my-server", "list_all", {}],
            ["files", "odd name", {}], ["files", "read", {"a": 1, "b": 2}],
            ["my-server", "_private", {}], ["files", "read", {}], ["files", "read", {}]])

    def test_no_name_of_an_argument_or_tool_is_taken(self):
        run = self.run_code("""
            arguments = dict(self=1, server=2, tool=3, timeout=4, name=5, arguments=6, args=7,
                             kwargs=8, raw=9, positional=10)
            tools = ("call", "call_tool", "list_tools", "name", "server", "keys", "get", "items",
                     "mro", "submit", "send", "close")
            for tool in tools:
                got = getattr(mcp_files, tool)(**arguments)
                assert got == {"type": "call_tool", "server": "files", "tool": tool,
                               "arguments": arguments}, got
            """, echo)
        self.assert_ok(run)

    def test_double_underscore_names_are_not_tools(self):
        run = self.run_code("""
            import copy, inspect
            print(hasattr(mcp_files, "__wrapped__"), hasattr(mcp_files.read, "anything"))
            inspect.getmodule(inspect)
            import warnings, doctest
            print(copy.copy(5), inspect.ismodule(mcp_files))
            """)
        self.assert_ok(run)
        self.assertEqual((run.stdout, run.requests), ("False False\n5 True\n", []))

    def test_listing_and_star_import(self):
        run = self.run_code("""
            print(dir(mcp_files))
            from mcp.servers.my_server import *
            print(read(), list_all())
            from mcp.servers import *
            print(files, my_server)
            """, metadata)
        self.assert_ok(run)
        self.assertEqual(run.stdout.splitlines()[:2],
                         ["['list_all', 'read']", "called read called list_all"])
        self.assertIn("MCP server 'my-server'", run.stdout)

    def test_star_import_while_a_loop_runs(self):
        run = self.run_code("""
            import asyncio
            async def main():
                from mcp.servers import files
                return dir(files), await files.read()
            asyncio.run(main())
            """, metadata)
        self.assert_ok(run)
        self.assertEqual(run.value, [["list_all", "read"], "called read"])

    def test_names_that_are_not_there(self):
        run = self.run_code("""
            from mcp.runtime import MCPError
            try:
                mcp_servers["nope"]
            except MCPError as error:
                print(error.code, error)
            print("nope" in mcp_servers, "my_server" in mcp_servers, mcp_servers.get("nope"))
            try:
                import mcp.servers.nope
            except ImportError as error:
                print(error)
            import os, json
            print(json.loads(os.environ["MCP_AVAILABLE_SERVERS"]), sorted(mcp_servers))
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout.splitlines(), [
            "not_found this run has no server 'nope'; it has files, my-server; no server is called "
            "'nope'; configured are: files, my-server, other",
            "False True None", "No module named 'mcp.servers.nope'",
            "['files', 'my-server'] ['files', 'my-server']"])

    def test_a_server_that_was_not_asked_for(self):
        """The error says how to ask for it."""
        for code, kind in (("mcp_other.read()", "NameError"),
                           ("import mcp.servers.other", "ModuleNotFoundError"),
                           ("from mcp.servers.other import *", "ModuleNotFoundError"),
                           ("mcp_servers['other']", "mcp.runtime.MCPError"),
                           ("def f(): return mcp_other\nf()", "NameError")):
            with self.subTest(code):
                run = self.run_code(code)
                error = run.done["error"]
                self.assertEqual(error["type"], kind)
                for text in (error["message"], error["traceback"], run.stderr):
                    self.assertIn('did you forget servers=["other"] in run_python?', text)
        for code in ("mcp_othr.read()", "import mcp.servers.othr"):
            with self.subTest(code):
                message = self.run_code(code).done["error"]["message"]
                self.assertIn("configured are: files, my-server, other", message)
        for code in ("mcpx", "other", "import nothing_of_the_kind", "raise NameError",
                     "raise ModuleNotFoundError", "raise NameError('mcp_other', 2)"):
            with self.subTest(code):
                self.assertNotIn("servers=", self.run_code(code).done["error"]["message"])

    def test_no_servers_at_all(self):
        run = self.run_code("""
            from mcp import runtime
            print(dict(mcp_servers), runtime.LOADED_MCP_SERVERS, runtime.discovered_servers())
            """, servers=[], discovered=[])
        self.assertEqual(run.stdout, "{} () []\n")

    def test_two_positional_arguments_are_refused(self):
        run = self.run_code("mcp_files.read('a', 'b')")
        self.assertEqual(run.done["error"]["type"], "mcp.runtime.MCPError")
        self.assertIn("keyword arguments", run.done["error"]["message"])
        self.assertEqual(run.requests, [])

    def test_reprs_help(self):
        run = self.run_code("print(mcp_files)\nprint(mcp_files.read)\nprint(mcp_servers)")
        self.assertIn("mcp_files.TOOL(**arguments)", run.stdout)
        self.assertIn("<MCP tool 'read' of server 'files'", run.stdout)


class Values(GuestTest):
    RESULTS = {
        "structured": {"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}},
        "wrapped": {"content": [], "structuredContent": {"result": 5}},
        "text": text_result('{"not": "parsed"}'),
        "texts": text_result("a", "b"),
        "empty_text": text_result(""),
        "mixed": {"content": [{"type": "text", "text": "x"}, {"type": "image", "data": "eA=="}]},
        "nothing": {"content": []},
        "zero": {"content": [], "structuredContent": 0},
        "kinds": {"content": [
            {"type": "audio", "data": "eA==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "x"}},
            {"type": "resource_link", "uri": "a://b", "name": "b"}]},
        "odd": {"content": "no list", "isError": False},
        "odder": {"content": [5, {"type": "text", "text": 7}]},
        "failed": {"content": [{"type": "text", "text": "it broke"}], "isError": True,
                   "structuredContent": {"why": 1}},
        "failed_silently": {"content": [], "isError": True},
    }

    def handler(self, payload):
        return self.RESULTS[payload["tool"]]

    def test_values(self):
        host = self.host(self.handler)
        for tool, value in (("structured", {"a": 1}), ("wrapped", {"result": 5}),
                            ("text", '{"not": "parsed"}'), ("texts", "a\nb"), ("empty_text", ""),
                            ("mixed", self.RESULTS["mixed"]["content"]), ("zero", 0),
                            ("kinds", self.RESULTS["kinds"]["content"]),
                            ("odder", self.RESULTS["odder"]["content"])):
            with self.subTest(tool):
                self.assertEqual(host.run("mcp_files.%s()" % tool).value, value)
                self.assertEqual(host.run("await mcp_files.%s()" % tool).value, value)
        for tool in ("nothing", "odd"):
            self.assertEqual(host.run("mcp_files.%s() is None" % tool).value, True)

    def test_raw_results(self):
        host = self.host(self.handler)
        host.run("from mcp.runtime import *")
        for code in ("call_tool('files', 'failed', raw=True)",
                     "await call_tool('files', 'failed', {}, raw=True)",
                     "call_tool_sync('files', 'failed', None, raw=True)",
                     "mcp_files.failed.raw()", "await mcp_files.failed.raw({})"):
            self.assertEqual(host.run(code).value, self.RESULTS["failed"])

    def test_raw_results_of_any_arguments(self):
        run = self.run_code("""
            got = mcp_files.read.raw({"raw": 1}, self=2, tool=3)
            got["structuredContent"]["arguments"]
            """, echo)
        self.assertEqual(run.value, {"raw": 1, "self": 2, "tool": 3})

    def test_a_failed_tool(self):
        run = self.run_code("""
            from mcp.runtime import MCPError
            import pickle
            try:
                mcp_files.failed()
            except MCPError as error:
                print(error)
                print(error.code, error.content, error.structured, error.result["isError"],
                      error.server, error.tool)
                again = pickle.loads(pickle.dumps(error))
                print(str(again) == error.message, again.code, again.tool, type(error).__module__)
            try:
                mcp_files.failed_silently()
            except MCPError as error:
                print(error)
            """, self.handler)
        self.assert_ok(run)
        self.assertEqual(run.stdout.splitlines(), [
            "tool 'failed' of server 'files' failed: it broke",
            "tool_error [{'type': 'text', 'text': 'it broke'}] {'why': 1} True files failed",
            "True tool_error failed mcp.runtime",
            "tool 'failed_silently' of server 'files' failed: it doesn't say why"])

    def test_a_call_that_is_not_awaited(self):
        """It says so when looked at, and at the end; it isn't made."""
        run = self.run_code("""
            import asyncio
            await asyncio.sleep(0)
            print(mcp_my_server.list(), mcp_files["read-it"]())
            kept = mcp_files.read(path="x")
            for _ in range(3): mcp_files.read()
            made = mcp_files.stat()
            print(await made, repr(made))
            from mcp import runtime
            runtime.list_servers()
            """)
        self.assertEqual(run.exit_code, 0, run.stderr)
        self.assertEqual(run.stdout.splitlines(), [
            "<call of my-server.list, not awaited: write await mcp_my_server.list(…)> "
            "<call of files.read-it, not awaited: write await mcp_files['read-it'](…)>",
            "ok <call of files.stat>"])
        self.assertEqual(run.stderr.splitlines(), [
            "RuntimeWarning: %s was never awaited, so the call wasn't made%s: write await %s"
            % (call, times, call) for call, times in (
                ("list_servers(…)", ""), ("mcp_files.read(…)", " (4 times)"),
                ("mcp_files['read-it'](…)", ""), ("mcp_my_server.list(…)", ""))])
        self.assertEqual([request["tool"] for request in run.requests], ["stat"])

    def test_a_call_that_is_used_without_await(self):
        run = self.run_code("await __import__('asyncio').sleep(0); mcp_files.read()['text']")
        self.assertIn("UnawaitedCall", run.done["error"]["message"])
        self.assertIn("write await mcp_files.read(…)", run.stderr)

    def test_calls_are_coroutines_for_asyncio(self):
        run = self.run_code("""
            import asyncio
            made = await asyncio.gather(mcp_files.a(), asyncio.wait_for(mcp_files.b(), 60),
                                        asyncio.create_task(mcp_files.c()))
            task = asyncio.ensure_future(mcp_files.d())
            print(asyncio.iscoroutine(mcp_files.e()), "files.d" in repr(task))
            never = asyncio.create_task(mcp_files.f())
            never.cancel()
            closed = mcp_files.g()
            closed.close()
            made.append(await task)
            made.append(await asyncio.to_thread(lambda: mcp_files.h()))
            print(made)
            """)
        self.assertEqual(run.exit_code, 0, run.stderr)
        self.assertEqual(run.stdout, "True True\n['ok', 'ok', 'ok', 'ok', 'ok']\n")
        self.assertIn("mcp_files.e(…)", run.stderr)
        for name in "abcdfgh":
            self.assertNotIn("mcp_files.%s(" % name, run.stderr)

    def test_a_refused_call(self):
        def handler(payload):
            raise Refusal("not_found", "files has no tool raed; did you mean read?")
        for code in ("mcp_files.raed()", "await mcp_files.raed()"):
            with self.subTest(code):
                run = self.run_code("""
                    from mcp.runtime import MCPError
                    try:
                        CODE
                    except MCPError as error:
                        print(error.code, error.message, error.content, error.structured,
                              error.server, error.tool)
                    """.replace("CODE", code), handler)
                self.assertEqual(run.stdout, "not_found files has no tool raed; did you mean read? "
                                             "None None files raed\n")

    def test_arguments_that_cannot_be_sent(self):
        host = self.host(echo, limits={"frameBytes": 5000})
        host.run("""
            from mcp.runtime import MCPError
            deep = []
            for _ in range(80): deep = [deep]
            ring = []; ring.append(ring)
            class Odd: pass
            """)
        for argument, code in (
                ("Odd()", "invalid_argument"), ("{1, 2}", "invalid_argument"),
                ("float('nan')", "invalid_argument"), ("b'x'", "invalid_argument"),
                ("deep", "invalid_argument"), ("ring", "invalid_argument"),
                ("[0] * 200_000", "invalid_argument"), ("{1: 1, '1': 2}", "invalid_argument"),
                ("{None: 1, 'null': 2}", "invalid_argument"), ("{(1,): 2}", "invalid_argument"),
                ("'x' * 6000", "too_large")):
            with self.subTest(argument):
                run = host.run("try: mcp_files.read(a=%s)\n"
                               "except MCPError as error: print(error.code)" % argument)
                self.assertEqual((run.stdout, run.requests), (code + "\n", []))
        run = host.run("mcp_files.read(a='\\ud83d\\ude00 \\ud800', b=(1, {2: 'é'}), c=1e300)")
        self.assertEqual(run.value["arguments"],
                         {"a": "😀 \ufffd", "b": [1, {"2": "é"}], "c": 1e300})

    def test_large_results_and_arguments(self):
        text = "é" * 3_000_000
        run = self.run_code("""
            value = mcp_files.read(text="é" * 3_000_000)
            len(value["arguments"]["text"])
            """, echo)
        self.assertEqual(run.value, 3_000_000)
        self.assertEqual(run.requests[0]["arguments"]["text"], text)


class Autoload(GuestTest):
    """Servers that the run wasn't given have names, too, where the host loads them on first use."""

    CODE = """
        from mcp.servers import other
        calls = [mcp_other.read(a=1), mcp_servers["other"].read(), other.read(),
                 mcp.runtime.call_tool("other", "read")]
        [[call["server"] for call in calls], LOADED_MCP_SERVERS, sorted(mcp_servers)]
        """

    def test_discovered_servers_can_be_called(self):
        run = self.run_code("import mcp\n" + textwrap.dedent(self.CODE), echo, autoload=True)
        self.assert_ok(run)
        names = [server["name"] for server in SERVERS]
        self.assertEqual(run.value, [["other"] * 4, names,
                                     sorted(server["name"] for server in DISCOVERED)])

    def test_without_it_they_have_none(self):
        run = self.run_code("mcp_other.read()", echo)
        self.assertEqual((run.exit_code, run.requests), (1, []))


class Runtime(GuestTest):
    def test_what_the_host_is_asked(self):
        queries = [
            ("list_servers{}()", {"type": "list_servers"}),
            ("list_tools{}('files')", {"type": "list_tools", "server": "files"}),
            ("query_tool_docs{}('files')",
             {"type": "query_tool_docs", "server": "files", "detail": "summary"}),
            ("query_tool_docs{}('files', 'read', detail='full')",
             {"type": "query_tool_docs", "server": "files", "tool": "read", "detail": "full"}),
            ("tool_stubs{}('files')",
             {"type": "query_tool_docs", "server": "files", "detail": "stubs"}),
            ("search_tool_docs{}('pdf')",
             {"type": "search_tool_docs", "query": "pdf", "limit": 5, "detail": "summary"}),
            ("search_tool_docs{}('pdf', limit=2, detail='full', server='files')",
             {"type": "search_tool_docs", "query": "pdf", "limit": 2, "detail": "full",
              "server": "files"}),
            ("call_tool{}('files', 'read', {{'a': 1}})",
             {"type": "call_tool", "server": "files", "tool": "read", "arguments": {"a": 1}})]
        host = self.host(metadata)
        host.run("from mcp.runtime import *")
        for call, payload in queries:
            for code in (call.format(""), "await " + call.format(""), call.format("_sync")):
                with self.subTest(code):
                    run = host.run(code)
                    self.assertEqual((run.exit_code, run.requests), (0, [payload]))
                    values = {"call_tool": "called read", "search_tool_docs": [payload]}
                    self.assertEqual(run.value, values.get(payload["type"], metadata(payload)))

    def test_what_a_search_left_out_is_shown_with_what_it_found(self):
        answers = {"some": {"tools": [{"tool": "x"}], "note": "not searched: other"},
                   "all": {"tools": []}}
        host = self.host(lambda payload: answers[payload["query"]])
        run = host.run("""
            from mcp import runtime
            some, every = runtime.search_tool_docs("some"), runtime.search_tool_docs_sync("all")
            print(some, every)
            [some, some.note, every.note, [each["tool"] for each in some]]
            """)
        self.assertEqual(run.stdout, "[{'tool': 'x'}]  # not searched: other []\n")
        self.assertEqual(run.value, [[{"tool": "x"}], "not searched: other", None, ["x"]])

    def test_what_is_known_without_asking(self):
        run = self.run_code("""
            from mcp import runtime
            [runtime.discovered_servers(), runtime.discovered_servers(detailed=True),
             runtime.LOADED_MCP_SERVERS, LOADED_MCP_SERVERS, runtime.list_loaded_server_metadata(),
             runtime.describe_server("my_server"), runtime.describe_server("other")]
            """)
        loaded = [dict(server, loaded=True) for server in SERVERS]
        other = dict(DISCOVERED[2], loaded=False)
        self.assertEqual(run.value, [
            ["files", "my-server", "other"], loaded + [other], ["files", "my-server"],
            ["files", "my-server"], loaded, loaded[1], other])
        self.assertEqual(run.requests, [])

    def test_an_unknown_server(self):
        run = self.run_code("import mcp.runtime\nmcp.runtime.describe_server('nope')")
        self.assertEqual(run.done["error"]["message"],
                         "there is no server 'nope'; known are files, my-server, other")

    def test_the_summary(self):
        run = self.run_code("import mcp.runtime\nprint(mcp.runtime.capability_summary())")
        text = (GUEST / "capabilities.md").read_text(encoding="utf-8")
        self.assertTrue(run.stdout.startswith(text))
        self.assertIn("`mcp_my_server` (my-server): has a dash", run.stdout)
        self.assertLess(len(text.encode()), 3000)

    def test_every_public_name_is_there_and_told(self):
        run = self.run_code("from mcp.runtime import *\nimport mcp.runtime as r\n"
                            "[n for n in r.__all__ if n not in globals()"
                            " or callable(globals()[n]) and not globals()[n].__doc__]")
        self.assertEqual(run.value, [])


if __name__ == "__main__":
    unittest.main()
