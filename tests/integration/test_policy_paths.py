"""Every path that code could take around the user's policy: by other names, by frames of its own, after its end, in a
session, by servers it didn't name, by what search and documents tell, by tools that changed or lie, by many calls
at once. No forbidden call reaches a server on any of them."""

import json
import os
import unittest

from host import account, is_root, patience, read, wait_until
from world import PYTHON, BulkheadTest, World, inside

READS = {"annotations": {"readOnlyHint": True}}
TOOLS = {
    "guarded": {"read_item": READS, "delete-all": {"description": "Erases everything"}, "delete_one": {},
                "update": {"description": "Changes an item"}},
    "hidden": {"secret_tool": {"description": "Tells the unicorn's name"}},
    "reader": {"get": READS, "put": {}, "silent": {"annotations": {}},
               "text": {"annotations": {"readOnlyHint": "true"}}, "case": {"annotations": {"ReadOnlyHint": True}},
               "both": {"annotations": {"readOnlyHint": True, "destructiveHint": True}},
               "title": {"annotations": {"title": "readOnlyHint: true"}, "title": "readOnlyHint: true"}},
    "asking": {"erase": {"description": "Erases an item"}, "look": READS},
    "limited": {"count": {}, "number": {}, "other": {}},
}
RULES = {"deny": ["hidden", "guarded/delete*"], "readOnly": ["reader"], "confirm": ["asking/er*"],
         "limits": {"perTool": {"limited/*": 3}}}
# Tries calls, given as (server, tool), by whatever way `make` makes of them, and prints how each one ended.
TRY = """
import json
from mcp.runtime import MCPError, call_tool_sync
def attempt(make):
    try:
        make()
        return "called"
    except MCPError as refused:
        return refused.code
    except Exception as failure:
        return type(failure).__name__
"""


def annotated(world, name):
    definitions = world.path(f"{name}.tools")
    with open(definitions, "w", encoding="utf-8") as file:
        json.dump(TOOLS[name], file)
    return {"command": PYTHON, "args": [world.path("annotated_server.py"), definitions],
            "env": {"RECORD": world.path(f"{name}.calls"), "STARTS": world.path(f"{name}.starts")}}


def all_servers(world):
    return {name: annotated(world, name) for name in TOOLS}


class PolicyTest(BulkheadTest):
    servers = staticmethod(all_servers)
    rules = RULES
    everything = ["guarded", "reader", "asking", "limited"]

    def calls_of(self, server):
        return [call["tool"] for call in self.world.recorded(f"{server}.calls")]

    def assert_uncalled(self):
        """Nothing that policy forbids has ever reached a server."""
        self.assertEqual(read(self.world.path("hidden.starts")), "", "a denied server was started")
        self.assertEqual({tool for tool in self.calls_of("guarded") if "delete" in tool}, set())
        self.assertLessEqual(set(self.calls_of("reader")), {"get"})
        self.assertLessEqual(set(self.calls_of("asking")), {"look"})

    def tearDown(self):
        self.assert_uncalled()

    def refusals(self, code, servers=None, **more):
        """The answers that code prints as JSON."""
        answer = self.run_well(TRY + code, self.everything if servers is None else servers, **more)
        return json.loads(answer["stdout"])


class Names(PolicyTest):
    def test_raw_names_aliases_and_attributes(self):
        found = self.refusals("""
import mcp.servers.guarded as module
ways = [lambda: call_tool_sync("guarded", "delete-all", {}), lambda: call_tool_sync("guarded", "delete_all", {}),
        lambda: mcp_guarded.delete_all(), lambda: getattr(mcp_guarded, "delete-all")(),
        lambda: mcp_servers["guarded"].delete_one(), lambda: module.delete_one(),
        lambda: call_tool_sync("hidden", "secret_tool", {}), lambda: mcp_servers["hidden"].secret_tool(),
        lambda: mcp_hidden.secret_tool()]
print(json.dumps([attempt(way) for way in ways]))
""")
        self.assertNotIn("called", found)
        self.assertEqual(found[:2], ["denied", "denied"])

    def test_a_denial_names_the_rule_and_its_file(self):
        answer = self.run_code("""
            from mcp.runtime import call_tool_sync
            call_tool_sync("guarded", "delete-all", {})
        """, ["guarded"])
        self.assertIn('deny rule "guarded/delete*"', answer["error"]["traceback"])
        self.assertIn(os.path.join(self.world.state, "servers.json"), answer["error"]["traceback"])

    def test_names_that_look_alike(self):
        names = ["Delete_One", "DELETE_ONE", "d\u0435lete_one", "delete\u2010all", "delete_one ", " delete_one",
                 "delete_one\u200b", "guarded/delete_one", "./delete_one", "delete_one\0", "ｄelete_one",
                 "delete_one/../update", "%64elete_one"]
        found = self.refusals(f"""
names = {names!r}
print(json.dumps([attempt(lambda: call_tool_sync("guarded", name, {{}})) for name in names]
                 + [attempt(lambda: call_tool_sync(name, "secret_tool", {{}}))
                    for name in ("Hidden", "hidden ", "h\u0456dden", "hidden/secret_tool", "mcp_hidden")]))
""")
        self.assertNotIn("called", found)
        self.assertEqual(self.calls_of("guarded"), [])


class Frames(PolicyTest):
    def test_forged_calls(self):
        wanted = [("guarded", "delete-all"), ("guarded", "delete_all"), ("guarded", "delete_one"),
                  ("hidden", "secret_tool"), ("reader", "put"), ("reader", "both"), ("asking", "erase"),
                  ("guarded\0", "delete_one"), ("guarded", "delete_one\0")]
        answer = self.run_well(inside("hostile") + f"""
answers = listen()
wanted = {wanted!r}
for i, (server, tool) in enumerate(wanted):
    frame = call(600 + i, server, tool)
    # What the host doesn't ask for has no say.
    frame["payload"].update(approved=True, readOnly=True, annotations={{"readOnlyHint": True}}, owner="root")
    forge(frame)
print(json.dumps([f and f.get("code") for f in wait_for(answers, range(600, 600 + len(wanted)))]))
""", self.everything)
        codes = json.loads(answer["stdout"])
        self.assertEqual(codes[:3] + codes[4:7], ["denied"] * 6, codes)
        self.assertNotIn(None, codes)

    def test_forged_questions_tell_nothing(self):
        answer = self.run_well(inside("hostile") + """
answers = listen()
number = 600
for kind in ("list_tools", "query_tool_docs", "search_tool_docs"):
    for server in ("guarded", "hidden", "reader", ""):
        forge({"type": "rpc_request", "id": number, "payload":
               {"type": kind, "server": server, "query": "erase delete secret unicorn put", "detail": "full",
                "limit": 50}})
        number += 1
print(json.dumps(wait_for(answers, range(600, number))))
""", self.everything)
        for word in ("delete", "Erases everything", "secret_tool", "unicorn's", '"put"', '"both"'):
            self.assertNotIn(word, answer["stdout"])

    def test_after_done(self):
        answer = self.run_well(inside("hostile") + """
kept = [os.dup(d) for d in frames_out]
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.read(reading, 1)
    frames_out[:] = kept
    for i in range(500):
        forge(call(5000 + i, "guarded", "update", message="process"))
        forge(call(7000 + i, "guarded", "delete_one"))
    os._exit(0)
channel = session()._channel
plain = channel.write
def write(frame):
    plain(frame)
    if b'"done"' in frame:
        os.write(writing, b"x")
        for i in range(500):
            forge(call(9000 + i, "guarded", "update", message="at once"))
channel.write = write
await mcp_guarded.read_item()
print("the end")
""", ["guarded"])
        self.assertEqual(answer["stdout"], "the end\n")
        self.assert_nothing_left()
        self.assertIn("read_item", self.calls_of("guarded"))
        self.assertNotIn("update", self.calls_of("guarded"))


class Documents(PolicyTest):
    def test_search_lists_documents_and_names(self):
        answer = self.run_well("""
            import json, mcp
            from mcp import runtime
            told = [await runtime.search_tool_docs("erase delete everything secret unicorn put both", limit=50)]
            for server in ("guarded", "reader"):
                told.append(await runtime.list_tools(server))
                told.append(await runtime.query_tool_docs(server, detail="full"))
                told.append(runtime.describe_server(server))
                told.append(await runtime.tool_stubs(server))
            for ask in (lambda: runtime.list_tools("hidden"), lambda: runtime.query_tool_docs("hidden"),
                        lambda: runtime.query_tool_docs("guarded", "delete_one"),
                        lambda: runtime.query_tool_docs("reader", "put")):
                try:
                    told.append(await ask())
                except runtime.MCPError as refused:
                    told.append(refused.code)
            told += [runtime.discovered_servers(), await runtime.list_servers(), runtime.list_loaded_server_metadata(),
                     dir(mcp_guarded), dir(mcp_reader), runtime.capability_summary()]
            print(json.dumps(told, default=str))
        """, ["guarded", "reader"])
        for word in ("Erases everything", "delete_one", "delete-all", "delete_all", "secret_tool", "unicorn's",
                     '"put"', '"both"', '"silent"', "def put"):
            self.assertNotIn(word, answer["stdout"])
        self.assertIn("read_item", answer["stdout"])


class Loading(PolicyTest):
    """Servers that the run didn't name, with and without MCP_BRIDGE_AUTOLOAD."""

    CODE = """
ways = [lambda: call_tool_sync("hidden", "secret_tool", {}), lambda: mcp_hidden.secret_tool(),
        lambda: mcp_servers["hidden"].secret_tool(), lambda: call_tool_sync("guarded", "delete_one", {}),
        lambda: mcp_guarded.delete_one(), lambda: call_tool_sync("reader", "put", {}),
        lambda: call_tool_sync("asking", "erase", {})]
def imported():
    import mcp.servers.hidden as module
    module.secret_tool()
print(json.dumps([attempt(way) for way in ways + [imported]]))
"""

    def test_unnamed_servers(self):
        self.assertNotIn("called", self.refusals(self.CODE, servers=[]))
        self.assertEqual(self.calls_of("guarded"), [])

    def test_autoload(self):
        client = self.world.client(MCP_BRIDGE_AUTOLOAD="1")
        self.assertNotIn("called", self.refusals(self.CODE, servers=[], client=client))
        self.assertEqual(client.close(patience(20)), 0)
        self.assertEqual(self.calls_of("guarded"), [])


class Annotations(PolicyTest):
    def test_only_a_plain_word_makes_a_tool_read_only(self):
        found = self.refusals(f"""
names = {list(TOOLS["reader"])!r}
print(json.dumps({{name: attempt(lambda: call_tool_sync("reader", name, {{}})) for name in names}}))
""")
        self.assertEqual(found, {**dict.fromkeys(TOOLS["reader"], "denied"), "get": "called"})

    def test_limits_hold_for_calls_at_once(self):
        answer = self.run_well("""
            import asyncio
            from mcp.runtime import MCPError
            tools = [mcp_limited.count, mcp_limited.number, mcp_limited.other] * 10
            results = await asyncio.gather(*[tool() for tool in tools], return_exceptions=True)
            refused = [r for r in results if isinstance(r, MCPError)]
            print(len(refused), {r.code for r in refused}, refused[0].message)
        """, ["limited"])
        self.assertIn("27 {'limit'}", answer["stdout"])
        self.assertIn('3 calls of "limited/*" a run', answer["stdout"])
        self.assertEqual(len(self.calls_of("limited")), 3)

    def test_nobody_to_ask(self):
        answer = self.run_code("await mcp_asking.erase()", ["asking"])
        self.assertEqual(answer["status"], "error", answer)
        self.assertIn("bulkhead approve asking/erase", answer["error"]["traceback"])
        self.assertEqual(self.refusals("""
print(json.dumps([attempt(lambda: call_tool_sync("asking", name, {})) for name in ("erase", "look")]))
"""), ["denied", "called"])


class Asked(PolicyTest):
    """A person's answers, by a client that can be asked."""

    META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    CODE = TRY + """
print(json.dumps([attempt(lambda: call_tool_sync("asking", "erase", {"item": number})) for number in range(%d)]))
"""

    def setUp(self):
        for name in ("asking.calls", "asking.tools"):
            if os.path.exists(self.world.path(name)):
                os.unlink(self.world.path(name))
        annotated(self.world, "asking")

    def tearDown(self):
        for arguments in (["approve", "--revoke", "asking/*"],):
            self.world.command(*arguments)

    def call(self, code, **more):
        params = {"name": "run_python", "arguments": {"code": code, "servers": ["asking"]}, **more}
        return self.client.request("tools/call", params, self.META).result(patience(90))

    def answer_all(self, code, answers):
        """The calls' outcomes, and the questions that were asked."""
        asked, more = [], {}
        while True:
            result = self.call(code, **more)
            if result["resultType"] == "complete":
                return json.loads(result["structuredContent"]["stdout"]), asked
            (key, question), = result["inputRequests"].items()
            asked.append(question["params"]["message"])
            more = {"requestState": result["requestState"], "inputResponses": {key: answers[len(asked) - 1]}}

    @staticmethod
    def yes(answer):
        return {"action": "accept", "content": {"answer": answer}}

    def test_once_is_once(self):
        outcomes, asked = self.answer_all(self.CODE % 2, [self.yes("once"), self.yes("no")])
        self.assertEqual(outcomes, ["called", "denied"])
        self.assertIn('{"item":0}', asked[0])
        self.assertIn('tool "erase" of your MCP server "asking"', asked[0])
        self.assertEqual(self.calls_of("asking"), ["erase"])

    def test_no_is_for_the_run(self):
        outcomes, asked = self.answer_all(self.CODE % 3, [{"action": "decline"}])
        self.assertEqual((outcomes, len(asked)), (["denied"] * 3, 1))
        self.assertEqual(self.calls_of("asking"), [])

    def test_always_is_for_the_definition(self):
        outcomes, asked = self.answer_all(self.CODE % 3, [self.yes("always")])
        self.assertEqual((outcomes, len(asked)), (["called"] * 3, 1))
        self.assertEqual(self.call(self.CODE % 1)["resultType"], "complete")
        self.assertIn(b"asking/erase", self.world.command("approve", "--list").stdout)
        # Another process, which starts the server anew, sees another definition.
        with open(self.world.path("asking.tools"), "w", encoding="utf-8") as file:
            json.dump({"erase": {"description": "Erases everything else"}}, file)
        done = self.world.command("run", "-", "--server", "asking", input=b"await mcp_asking.erase()", seconds=90)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"definition has changed since", done.stderr)
        self.assertEqual(len(self.calls_of("asking")), 4)

    def test_answers_that_nobody_was_asked_for(self):
        """Given along with the call, under any name, or twice."""
        code = self.CODE % 1
        early = {key: self.yes("always") for key in ("", "elicitation-1", "bulkhead-1", "asking", "answer")}
        asked = self.call(code, inputResponses=early)
        self.assertEqual(asked["resultType"], "input_required")
        self.assertEqual(self.calls_of("asking"), [])
        (key, _), = asked["inputRequests"].items()
        wrong = self.call(code, requestState=asked["requestState"], inputResponses={"other": self.yes("once")})
        self.assertEqual((wrong["resultType"], self.calls_of("asking")), ("input_required", []))
        back = {"requestState": wrong["requestState"], "inputResponses": {key: self.yes("once")}}
        self.assertEqual(self.call(code, **back)["resultType"], "complete")
        self.assertEqual(self.calls_of("asking"), ["erase"])
        with self.assertRaises(RuntimeError):
            self.call(code, **back)
        self.assertEqual(self.calls_of("asking"), ["erase"])

    def test_an_answer_after_the_end(self):
        code = self.CODE % 1
        params = {"name": "run_python", "arguments": {"code": code, "servers": ["asking"]}}
        asked = self.client.request("tools/call", params, self.META).result(patience(90))
        self.assertEqual(asked["resultType"], "input_required")
        client = self.world.client()
        with self.assertRaises(RuntimeError):
            # A state is its client's: nobody else can answer in its place.
            client.request("tools/call", {**params, "requestState": asked["requestState"], "inputResponses": {
                key: self.yes("once") for key in asked["inputRequests"]}}, self.META).result(patience(90))
        self.assertEqual(client.close(patience(20)), 0)
        self.assertEqual(self.calls_of("asking"), [])


class Sessions(PolicyTest):
    def test_a_session_has_the_policy_too(self):
        reply = self.client.start_run("x = 1", ["guarded"], session="new")
        handle = self.answer(reply)["session"]
        again = self.client.start_run(TRY + """
print(json.dumps([attempt(lambda: call_tool_sync("guarded", name, {})) for name in ("delete_one", "read_item")]
                 + [attempt(lambda: call_tool_sync("hidden", "secret_tool", {}))]))
""", session=handle)
        self.assertEqual(json.loads(self.answer(again)["stdout"])[:2], ["denied", "called"])


class Approvals(unittest.TestCase):
    """What a person approved beforehand, by the command."""

    CODE = b"await mcp_asking.erase()"

    def setUp(self):
        self.world = World(all_servers, RULES)

    def tearDown(self):
        self.world.close()

    def run_it(self):
        done = self.world.command("run", "-", "--server", "asking", input=self.CODE, seconds=90)
        return done.returncode, done.stderr.decode()

    def approve(self, *arguments, status=0):
        done = self.world.command("approve", *arguments, seconds=90)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def redefine(self, **changes):
        with open(self.world.path("asking.tools"), "w", encoding="utf-8") as file:
            json.dump({**TOOLS["asking"], "erase": {**TOOLS["asking"]["erase"], **changes}}, file)

    def test_an_approval_is_for_the_tool_as_it_is(self):
        status, text = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("bulkhead approve asking/erase", text)
        self.assertIn("Erases an item", self.approve("asking/erase"))
        path = os.path.join(self.world.state, "tool-approvals")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertIn("asking/erase", self.approve("--list"))
        self.assertEqual(self.run_it()[0], 0)
        for change in ({"description": "Erases all items"}, {"inputSchema": {"type": "object", "title": "x"}},
                       {"annotations": {"destructiveHint": False}}):
            with self.subTest(change):
                self.redefine(**change)
                status, text = self.run_it()
                self.assertEqual(status, 1)
                self.assertIn("definition has changed since", text)
        self.redefine()
        self.assertEqual(self.run_it()[0], 0, "it is the tool that was approved")
        self.approve("--revoke", "asking/erase")
        self.assertEqual(self.run_it()[0], 1)
        self.assertEqual(len(self.world.recorded("asking.calls")), 2)

    def test_what_cannot_be_approved(self):
        self.assertIn("denied by policy", self.approve("guarded/delete_one", status=1))
        self.assertIn("denied", self.approve("hidden/secret_tool", status=1))
        self.assertIn("erase", self.approve("asking/eraze", status=1))
        self.assertIn("names no tool", self.approve("asking", status=2))
        self.assertIn("no approval", self.approve("--revoke", "asking/erase", status=1))
        self.assertEqual(read(self.world.path("hidden.starts")), "")

    def test_code_cannot_approve(self):
        """The file is out of the sandbox's reach, and one that others could write is not believed."""
        self.approve("asking/erase")
        self.assertEqual(self.run_it()[0], 0)
        path = os.path.join(self.world.state, "tool-approvals")
        for sought in (path, os.path.join(self.world.state, "ledger.db")):
            self.assertTrue(os.path.exists(sought), sought)
        done = self.world.command("run", "-", input=b"""
import os
seen = 0
for folder, folders, files in os.walk("/"):
    if folder.startswith("/proc"):
        folders.clear()
    seen += len(files)
    print(*[os.path.join(folder, name) for name in files if "approvals" in name or "ledger" in name], end="")
print("walked" if seen > 100 else seen)
""", seconds=90)
        self.assertEqual((done.returncode, done.stdout), (0, b"walked\n"), done)
        os.chmod(path, 0o666)
        self.assertEqual(self.run_it()[0], 1)
        self.assertIn("chmod", self.approve("--list", status=1))
        os.chmod(path, 0o600)
        if is_root():
            os.chown(path, account().pw_uid + 1, -1)
            self.assertEqual(self.run_it()[0], 1)

    def test_the_policy_in_force_is_shown(self):
        shown = self.world.command("servers", "--tools", seconds=90).stdout.decode()
        for text in ("policy: deny hidden (", "policy: readOnly reader (", "policy: confirm asking/er* (",
                     "policy: perTool limited/*: 3 (", "asks a person first", "annotation readOnlyHint"):
            self.assertIn(text, shown)
        policy = json.loads(self.world.command("servers", "--json").stdout)["policy"]
        self.assertEqual(len(policy), 5, policy)


class Narrowed(unittest.TestCase):
    """Policy that becomes another while there are sessions and runs."""

    CALL = TRY + """
print(json.dumps([attempt(lambda: call_tool_sync("guarded", name, {})) for name in ("update", "read_item")]))
"""

    def setUp(self):
        self.world = World(all_servers, RULES)
        self.client = self.world.client()

    def tearDown(self):
        self.world.close()

    def configure(self, **rules):
        """One more file; it is there at once, whole, and the account's."""
        path = self.world.path("more.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"policy": rules}, file)
        if is_root():
            os.chown(path, account().pw_uid, account().pw_gid)
        os.rename(path, os.path.join(self.world.state, "more.json"))

    def run_in(self, session, code=CALL):
        answer = self.client.start_run(code, ["guarded"], session=session).result(patience(90))["structuredContent"]
        self.assertEqual(answer["status"], "success", answer)
        return answer["session"], json.loads(answer["stdout"])

    def becomes(self, session, wanted):
        wait_until(lambda: self.run_in(session)[1] == wanted, 30, f"calls end with {wanted}")

    def test_a_session_made_before(self):
        session, outcomes = self.run_in("new")
        self.assertEqual(outcomes, ["called", "called"])
        self.configure(readOnly=True)
        self.becomes(session, ["denied", "called"])
        self.configure(deny=["guarded/read_*"])
        self.becomes(session, ["called", "denied"])

    def test_a_session_made_under_a_stricter_policy_stays_within_it(self):
        self.configure(deny=["guarded/update"])
        wait_until(lambda: self.run_in("new")[1] == ["denied", "called"], 30, "the policy is in force")
        session, _ = self.run_in("new")
        self.configure()
        wait_until(lambda: self.run_in("new")[1] == ["called", "called"], 30, "the policy is wide again")
        self.assertEqual(self.run_in(session)[1], ["denied", "called"])

    def test_a_run_that_goes_on(self):
        code = TRY + """
import time
until = time.monotonic() + 60
first = attempt(lambda: call_tool_sync("guarded", "update", {}))
print("begun", flush=True)
while (now := attempt(lambda: call_tool_sync("guarded", "update", {}))) == "called" and time.monotonic() < until:
    time.sleep(0.1)
print(json.dumps([first, now]))
"""
        reply = self.client.start_run(code, ["guarded"], timeout=100)
        wait_until(lambda: self.world.recorded("guarded.calls"), 60, "it calls")
        self.configure(readOnly=["guarded"])
        answer = reply.result(patience(90))["structuredContent"]
        self.assertEqual(answer["stdout"].splitlines()[1], '["called", "denied"]', answer)


class Strictest(unittest.TestCase):
    def test_several_files_are_as_strict_as_the_strictest(self):
        world = World(all_servers, {"allow": ["guarded", "reader"]})
        try:
            world.write_config("more.json", {"policy": {"allow": ["guarded/read_*"], "readOnly": True}})
            world.settle()
            shown = json.loads(world.command("servers", "--tools", "--json", seconds=90).stdout)
            tools = {server["name"]: [tool["name"] for tool in server.get("tools", []) if tool["allowed"]]
                     for server in shown["servers"]}
            self.assertEqual(tools, {**dict.fromkeys(TOOLS, []), "guarded": ["read_item"]})
        finally:
            world.close()
