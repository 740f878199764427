"""Finding tools among all configured servers, whether a run has them or not, from what is kept of them on disk; checking
arguments; type stubs; servers that are loaded on first use."""

import ast
import json
import re
import time
import unittest

from host import patience, read
from stdio_client import StdioClient
from world import BINARY, PYTHON, BulkheadTest, World

import many_servers

FIRST = 5
QUESTIONS_TO_ANSWER = 50
HOSTILE = [
    {"name": 'x"""; import os', "description": '"""\n\'\'\'\\\nos.system("x") # \x1b[31m \u202e \u2028',
     "inputSchema": {"type": "object", "properties": {
         'a"):\n  x': {"type": "string", "enum": ['"\n', "'"]}, "others": {}, "class": {"type": "integer"},
         "__debug__": {}, "ok": {"type": ["array", "null"], "items": {"type": "string"}}},
         "required": ["ok"]}},
    {"name": "None", "description": "", "inputSchema": {"type": "object"}},
    {"name": "日本語", "title": "\\", "inputSchema": {"type": "object", "properties": {"é": {}, "é": {}}}}]


def catalogue_server(world, catalogue, **more):
    """The entry of a server with these tools (servers/catalogue_server.py)."""
    path = world.path(catalogue["name"] + ".tools.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(catalogue, file)
    return {"command": PYTHON, "args": [world.path("catalogue_server.py"), path],
            "description": catalogue.get("description", ""), "env": {"STARTS": world.path("starts")}, **more}


def tool(name, description="", **properties):
    return {"name": name, "description": description,
            "inputSchema": {"type": "object", "properties": properties, "additionalProperties": False}}


class DiscoveryTest(BulkheadTest):
    def starts(self):
        return read(self.world.path("starts")).split()

    def search(self, query, servers=(), **options):
        """Names of servers and tools that a search finds, and what it says besides."""
        answer = self.run_well(f"""
            from mcp.runtime import search_tool_docs
            found = await search_tool_docs({query!r}, **{options!r})
            [[[each["server"], each["tool"], each.get("toCall")] for each in found], found.note]
            """, servers)
        return answer["result"]


class ManyServers(DiscoveryTest):
    """50 servers with 1,500 tools."""

    @staticmethod
    def servers(world):
        return {each["name"]: catalogue_server(world, each) for each in many_servers.servers()}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        listed = cls.world.command("servers", "--tools", "--json", seconds=300)
        if listed.returncode != 0:
            raise AssertionError(listed.stderr.decode())
        cls.listed = json.loads(listed.stdout)["servers"]

    def test_what_a_host_puts_into_context_does_not_grow(self):
        self.assertEqual(sum(len(each["tools"]) for each in self.listed), 1500)
        with StdioClient([BINARY], env=self.world.environment(), handshake=False) as client:
            instructions = client.request("initialize", {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "tests", "version": "1"}}).result().get("instructions", "")
        tools = self.client.request("tools/list").result()["tools"]
        seen = len(instructions.encode()) + sum(
            len((each["name"] + each["description"]).encode()) +
            len(json.dumps(each["inputSchema"], ensure_ascii=False, separators=(",", ":")).encode())
            for each in tools)
        print(f"in context: {seen} bytes, of which instructions {len(instructions.encode())}")
        self.assertEqual(len(tools), 1)
        self.assertLessEqual(seen, 1400)

    def test_the_right_tool_is_among_the_first_five(self):
        before = len(self.starts())
        questions = many_servers.questions()
        answer = self.run_well(f"""
            import time
            from mcp.runtime import search_tool_docs_sync
            search_tool_docs_sync("anything")
            found, took = [], []
            for question in {[each["question"] for each in questions]!r}:
                begun = time.perf_counter()
                docs = search_tool_docs_sync(question, limit={FIRST})
                took.append(time.perf_counter() - begun)
                found.append([[each["server"], each["tool"]] for each in docs])
            took.sort()
            [found, took[len(took) // 2] * 1000, took[-1] * 1000]
            """)
        found, middle, longest = answer["result"]
        right = sum([each["server"], each["tool"]] in docs for each, docs in zip(questions, found))
        print(f"{right} of {len(questions)} questions answered; as code sees it, a search takes "
              f"{middle:.1f} ms, at most {longest:.1f}")
        self.assertGreaterEqual(right, QUESTIONS_TO_ANSWER)
        self.assertEqual(len(self.starts()), before, "a search starts no server")

    def test_what_is_found_can_be_called_as_it_says(self):
        found, note = self.search("report a bug in the repository")
        self.assertIn(["github", "create_issue", 'pass servers=["github"] to run_python'], found)
        self.assertIsNone(note)
        answer = self.run_well("await mcp_github.create_issue(title='x')", ["github"])
        self.assertEqual(answer["result"], "create_issue")
        self.assertIn(["github", "create_issue", None],
                      self.search("report a bug in the repository", ["github"])[0])


class FewServers(DiscoveryTest):
    rules = {"deny": ["vault", "paint/burn_*"]}

    @staticmethod
    def servers(world):
        def server(name, *tools):
            return catalogue_server(world, {"name": name, "tools": list(tools)})
        return {"paint": server("paint", tool("paint_fence", "Puts color on a fence.", color={"type": "string"}),
                                tool("burn_fence", "Sets a fence on fire.")),
                "vault": server("vault", tool("open_safe", "Opens the safe.")),
                "odd": server("odd", *HOSTILE)}

    def test_1_nothing_is_known_before_a_server_was_started(self):
        found, note = self.search("color of the fence")
        self.assertEqual(found, [])
        self.assertIn("odd, paint;", note)
        self.assertNotIn("vault", note)
        self.assertEqual(self.starts(), [])
        answer = self.run_well("""
            from mcp.runtime import MCPError, query_tool_docs, search_tool_docs
            print(await search_tool_docs("fence"))
            try:
                await query_tool_docs("paint")
            except MCPError as e:
                print(e.code, e.message)
            """)
        self.assertRegex(answer["stdout"], r"(?s)^\[\]  # not searched.*not_found .*servers=\[\"paint\"\]")

    def test_2_what_a_run_has_started_others_find_and_so_does_the_next_start(self):
        self.run_well("dir(mcp_paint)", ["paint"])
        started = self.starts()
        self.assertEqual(started, ["paint"])
        other = self.world.client()
        for client in (self.client, other):
            answer = self.run_well("""
                from mcp.runtime import query_tool_docs, search_tool_docs
                found = await search_tool_docs("color of the fence")
                docs = await query_tool_docs("paint", detail="full")
                [[each["tool"] for each in found], found.note, [each["tool"] for each in docs], docs[0]["toCall"]]
                """, client=client)
            found, note, docs, hint = answer["result"]
            self.assertEqual((found, docs, hint),
                             (["paint_fence"], ["paint_fence"], 'pass servers=["paint"] to run_python'))
            self.assertIn("odd;", note)
        self.assertEqual(self.starts(), started)
        self.assertEqual(other.close(patience(20)), 0)

    def test_3_policy_holds_for_what_is_kept(self):
        self.run_well("dir(mcp_paint)", ["paint"])
        found, _ = self.search("set the fence on fire", limit=50)
        self.assertIn("paint_fence", [each[1] for each in found])
        self.assertNotIn("burn_fence", [each[1] for each in found])
        for expression in ("search_tool_docs('safe', server='vault')", "query_tool_docs('vault')",
                           "query_tool_docs('paint', 'burn_fence')", "tool_stubs('vault')"):
            answer = self.run_well(f"""
                from mcp.runtime import *
                try:
                    print("value", await {expression})
                except MCPError as e:
                    print(e.code)
                """)
            self.assertEqual(answer["stdout"], "not_found\n", expression)
        stubs = self.run_well("from mcp.runtime import tool_stubs; await tool_stubs('paint')")["result"]
        self.assertIn("def paint_fence(*, color: str = ...) -> Any:", stubs)
        self.assertNotIn("burn", stubs)

    def test_a_changed_list_replaces_what_was_kept(self):
        path = self.world.path("paint.tools.json")
        with open(path, encoding="utf-8") as file:
            catalogue = json.load(file)
        world = World(lambda world: {"paint": catalogue_server(world, dict(catalogue))})
        try:
            for tools, version in ((["first_tool"], "1"), (["second_tool", "third_tool"], "2")):
                with open(world.path("paint.tools.json"), "w", encoding="utf-8") as file:
                    json.dump({"name": "paint", "version": version, "tools": [tool(name) for name in tools]}, file)
                client = world.client()
                self.run_well("dir(mcp_paint)", ["paint"], client=client)
                self.assertEqual(client.close(patience(20)), 0)
                client = world.client()
                answer = self.run_well("""
                    from mcp.runtime import query_tool_docs
                    [each["tool"] for each in await query_tool_docs("paint")]
                    """, client=client)
                self.assertEqual(answer["result"], tools)
                self.assertEqual(client.close(patience(20)), 0)
        finally:
            world.close()

    def test_arguments_are_checked_before_the_call(self):
        for arguments, words in (({"color": 7}, "color: expected string, got the integer 7"),
                                 ({"colour": "red"}, 'there is no "colour"; did you mean "color"?'),
                                 ({"colour": "x" * 100_000}, 'did you mean "color"?')):
            answer = self.run_well(f"""
                from mcp.runtime import MCPError
                try:
                    await mcp_paint.paint_fence(**{arguments!r})
                except MCPError as e:
                    print(e.code, e.message)
                """, ["paint"])
            self.assertTrue(answer["stdout"].startswith("invalid_argument "), answer["stdout"][:500])
            self.assertIn(words, answer["stdout"])
        for length in (1, 100_000):
            answer = self.run_well(f"await mcp_paint.paint_fence(color='x' * {length})", ["paint"])
            self.assertEqual(answer["result"], "paint_fence")

    def test_stubs_are_python_whatever_a_server_says(self):
        printed = self.world.command("servers", "--stubs")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        text = printed.stdout.decode()
        ast.parse(text)
        self.assertEqual(re.findall(r"(?m)^# (.*)$", text), ["mcp/servers/odd.pyi", "mcp/servers/paint.pyi"])
        self.assertNotIn("burn_fence", text)
        one = json.loads(self.world.command("servers", "--stubs", "odd", "--json").stdout)
        self.assertEqual(list(one), ["mcp/servers/odd.pyi"])
        module = ast.parse(one["mcp/servers/odd.pyi"])
        functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
        self.assertEqual(len(functions), len(HOSTILE))
        self.assertEqual([type(node) for node in module.body if node not in functions],
                         [ast.Expr, ast.ImportFrom])
        for function in functions:
            self.assertTrue(all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                                for node in function.body))
        unknown = self.world.command("servers", "--stubs", "pant")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn(b'did you mean "paint"?', unknown.stderr)


class Autoload(DiscoveryTest):
    variables = {"MCP_BRIDGE_AUTOLOAD": "1"}
    rules = {"deny": ["vault"]}
    servers = staticmethod(lambda world: {
        name: catalogue_server(world, {"name": name, "tools": [tool("what")]}) for name in ("one", "two", "vault")})

    def test_code_that_names_an_allowed_server_loads_it(self):
        answer = self.run_well("""
            from mcp.servers import two
            print(LOADED_MCP_SERVERS, await mcp_one.what(), await mcp_servers["two"].what(), await two.what())
            """)
        self.assertEqual(answer["stdout"], "() what what what\n")
        self.assertEqual(sorted(answer["servers"]), ["one", "two"])

    def test_a_denied_one_is_never_loaded(self):
        answer = self.run_well("""
            from mcp.runtime import MCPError, call_tool
            print("mcp_vault" in dir(__builtins__), "vault" in mcp_servers)
            try:
                await call_tool("vault", "what")
            except MCPError as e:
                print(e.code)
            """)
        self.assertEqual(answer["stdout"], "False False\nnot_found\n")
        self.assertNotIn("vault", self.starts())

    def test_in_a_session(self):
        client = self.world.client()
        first = self.answer(client.start_run("await mcp_one.what()", session="new"))
        again = self.answer(client.start_run("await mcp_two.what()", session=first["session"]))
        self.assertEqual([first.get("result"), again.get("result")], ["what", "what"], (first, again))
        self.assertEqual(client.close(patience(20)), 0)


class NoAutoload(DiscoveryTest):
    servers = staticmethod(lambda world: {"one": catalogue_server(world, {"name": "one", "tools": [tool("what")]})})

    def test_without_the_setting_a_server_that_was_not_named_is_not_there(self):
        answer = self.run_well("""
            from mcp.runtime import MCPError, call_tool
            try:
                await call_tool("one", "what")
            except MCPError as e:
                print(e.code, "mcp_one" in globals())
            """)
        self.assertEqual(answer["stdout"], "denied False\n")
        self.assertEqual(self.starts(), [])


if __name__ == "__main__":
    unittest.main()
