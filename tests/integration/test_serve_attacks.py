"""One tenant of `bulkhead serve` tries to learn of, read, cancel, resume or change what is another's, with guessed and with
stolen names. Each test says what must be true for both afterwards."""

import concurrent.futures
import hashlib
import json
import os
import re
import signal
import unittest

from host import read, wait_until
from http_server import LEGACY, MODERN, Session, rpc
from test_serve import SLEEP, ServeTest, structured, wait_for_start

GUESSED = "0123456789abcdef" * 2
FORM = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
YES = {"action": "accept", "content": {"answer": "once"}}
NO = {"action": "decline"}
CONFIRMED = "print(await mcp_mine.echo(message='allowed'))"


def files_below(folder):
    """What lies there, by path: the content's hash of a file, where it leads of a link."""
    found = {}
    for path, folders, names in os.walk(folder):
        for name in folders + names:
            whole = os.path.join(path, name)
            if os.path.islink(whole):
                found[whole] = os.readlink(whole)
            elif os.path.isfile(whole):
                with open(whole, "rb") as file:
                    found[whole] = hashlib.sha256(file.read()).hexdigest()
            else:
                found[whole] = "a folder"
    return found


class AttackTest(ServeTest):
    def calls(self, client, name):
        """Waits until a server that was just configured can be used."""
        wait_until(lambda: structured(client.run_modern("print(1)", servers=[name])).get("stdout") == "1\n", 60,
                   "the changed configuration is noticed")

    def give_confirmed_server(self, name):
        """One whose calls want a person's yes."""
        path = f"tenants/{name}/servers.json"
        self.give_server(name, "mine", self.world.recorder(f"record-{name}"))
        config = json.loads(read(f"{self.world.state}/{path}"))
        self.write_private(path, {**config, "policy": {"confirm": ["mine/*"]}})
        client = self.server.of(name)
        self.calls(client, "mine")
        look = "try: await mcp_mine.add(a=1, b=1)\nexcept Exception: print('denied')"
        wait_until(lambda: structured(client.run_modern(look, servers=["mine"])).get("stdout") == "denied\n", 60,
                   "calls want a yes")
        if os.path.exists(self.world.path(f"record-{name}")):
            os.remove(self.world.path(f"record-{name}"))

    def recorded(self):
        return [name for name in ("record-ann", "record-bob") if self.world.recorded(name)]

    def read_resource(self, client, uri):
        return client.ask_modern(3, "resources/read", {"uri": uri}, headers={"Mcp-Name": uri}).json()

    def assert_unharmed(self):
        for client in (self.ann, self.bob):
            self.assertEqual(structured(client.run_modern("print('unharmed')"))["stdout"], "unharmed\n")


class Stealing(AttackTest):
    def test_a_request_state_is_its_tenant_s(self):
        for name in ("ann", "bob"):
            self.give_confirmed_server(name)
        arguments = {"code": CONFIRMED, "servers": ["mine"]}

        def call(client, **more):
            return client.ask_modern(1, "tools/call", {"name": "run_python", "arguments": arguments, **more}, FORM)
        asked = call(self.ann).result()
        self.assertEqual(asked["resultType"], "input_required", asked)
        (key, _), = asked["inputRequests"].items()
        stolen = call(self.bob, requestState=asked["requestState"], inputResponses={key: YES}).response()
        guessed = call(self.bob, requestState=GUESSED, inputResponses={key: YES}).response()
        self.assertEqual(stolen["error"]["code"], -32602)
        self.assertEqual(stolen["error"], guessed["error"])
        self.assertEqual(self.recorded(), [])
        done = call(self.ann, requestState=asked["requestState"], inputResponses={key: YES}).result()
        self.assertEqual(done["structuredContent"]["stdout"], "allowed\n")
        self.assertEqual(self.recorded(), ["record-ann"])

    def test_kept_output_and_artifacts_by_any_spelling(self):
        made = self.ann.run_modern("from mcp.runtime import save_file\nsave_file('secret.txt', b'of ann')\n"
                                   "print('of ann' * 100000)")
        uris = set(re.findall(r"bulkhead://(?:output|artifacts)/[0-9a-f]{32}/[\w.]+", json.dumps(made.result())))
        self.assertEqual({uri.rpartition("/")[2] for uri in uris}, {"secret.txt", "stdout"})
        for uri in uris:
            kind, handle = uri.split("/")[2:4]
            spellings = [uri, f"{uri}?offset=0&length=10", f"bulkhead://{kind}/../ann/{handle}/stdout",
                         f"bulkhead://{kind}/%2e%2e%2fann%2fartifacts%2f{handle}/stdout",
                         f"bulkhead://artifacts/{GUESSED}/..%2f..%2f..%2fann%2fartifacts%2f{handle}%2fsecret.txt"]
            for spelling in spellings:
                stolen = self.read_resource(self.bob, spelling)
                self.assertNotIn("result", stolen, spelling)
                guessed = self.read_resource(self.bob, spelling.replace(handle, GUESSED))
                self.assertEqual(json.dumps(stolen["error"]).replace(handle, GUESSED), json.dumps(guessed["error"]))
            self.assertIn("of ann", json.dumps(self.read_resource(self.ann, uri)))

    def test_the_run_s_id_is_no_key(self):
        """What an answer, the log or the ledger tell of a run opens nothing for another tenant."""
        made = structured(self.ann.run_modern("print('of ann')"))
        shown = wait_until(lambda: json.loads(self.world.command(
            "ledger", "--json", MCP_BRIDGE_STATE_DIR=self.server.state_of("ann")).stdout or "[]"), 30, "it is noted")
        self.assertEqual(made["status"], "success")
        for run in {value for record in shown for value in record.values()
                    if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{32}", value)}:
            for uri in (f"bulkhead://output/{run}/stdout", f"bulkhead://artifacts/{run}/x"):
                self.assertIn("error", self.read_resource(self.bob, uri))
            lost = structured(self.bob.run_modern("print(1)", session=run))
            self.assertEqual(lost["status"], "session_lost")

    def test_events_of_another_session(self):
        hers, his = self.ann.open_session(), self.bob.open_session()
        answers = [session.run(f"print('started', flush=True)\nprint('of {name}')", progress=1)
                   for session, name in ((hers, "ann"), (his, "bob"))]
        for answer in answers:
            answer.messages()
        for event in [*answers[0].ids, "0.0", "1.0", "2.999", "18446744073709551615.1", "-1", "a" * 5000]:
            replayed = his.read(event)
            if replayed.status == 200:
                stream = replayed
                message = stream.next_message() if event in answers[0].ids else None
                self.assertNotIn("of ann", json.dumps(message))
                stream.close()
            else:
                self.assertEqual(replayed.status, 400)
        again = hers.read(answers[0].ids[0]).messages()
        self.assertIn("of ann", json.dumps(again[-1]))

    def test_a_session_that_has_ended(self):
        session = self.ann.open_session()
        stale = dict(session.headers)
        self.assertEqual(session.end().status, 204)
        unknown = {**stale, "Mcp-Session-Id": GUESSED}
        for client in (self.ann, self.bob):
            for headers in (stale, unknown):
                answer = client.ask(message=rpc(1, "ping", {}), headers=headers)
                self.assertEqual(answer.status, 404)
        self.assert_unharmed()

    def test_another_s_request_can_not_be_cancelled(self):
        hers, his = self.ann.open_session(), self.bob.open_session()
        code = "import time\nprint('started', flush=True)\ntime.sleep(3)\nprint('whole')"
        going = [hers.run(code, id=7, progress="p"), self.ann.run_modern(code, id=7, meta={"progressToken": "p"})]
        for answer in going:
            wait_for_start(answer)
        own = his.run(SLEEP, id=7, progress="p")
        wait_for_start(own)
        self.assertEqual(his.tell("notifications/cancelled", {"requestId": 7}).status, 202)
        self.assertEqual(own.messages()[-1:], [], "his own ends")
        for number in (*range(12), "7", "p"):
            his.tell("notifications/cancelled", {"requestId": number})
            self.bob.ask(message={"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
                "requestId": number, "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}},
                headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": "notifications/cancelled"}).text()
            his.tell("notifications/progress", {"progressToken": "p", "progress": 1, "message": "forged"})
        for answer in going:
            messages = answer.messages()
            self.assertEqual(messages[-1]["result"]["structuredContent"]["stdout"], "started\nwhole\n")
            self.assertNotIn("forged", json.dumps(messages))

    def test_answers_to_another_s_questions(self):
        """A response with the id of a question that another's client was asked."""
        self.give_confirmed_server("ann")
        opened = self.ann.ask(message=rpc(0, "initialize", {
            "protocolVersion": LEGACY, "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "test", "version": "1"}}))
        session = Session(self.ann, opened.headers["Mcp-Session-Id"])
        answer = session.run(CONFIRMED, id=5, servers=["mine"])
        question = answer.next_message()
        while question.get("method") != "elicitation/create":
            question = answer.next_message()
        forged = {"jsonrpc": "2.0", "id": question["id"], "result": NO}
        his = self.bob.open_session()
        self.assertEqual(self.bob.ask(message=forged, headers=his.headers).status, 202)
        self.assertEqual(self.bob.ask(message=forged, headers=session.headers).status, 404)
        self.assertEqual(self.ann.ask(message={**forged, "result": YES}, headers=session.headers).status, 202)
        self.assertEqual(structured(answer)["stdout"], "allowed\n")


class Reaching(AttackTest):
    def test_no_name_leads_into_another_s_folder(self):
        code = ("from mcp.runtime import save_tool, save_memory\n"
                "def greet():\n    return 'of ann'\n"
                "save_tool(greet)\nsave_memory('note', 'of ann')")
        self.assertEqual(structured(self.ann.run_modern(code))["status"], "success")
        self.give_server("ann", "mine", self.world.recorder("record-ann"))
        self.assert_unharmed()
        others = [path for path in os.listdir(self.world.state) if path != "tenants"]
        watched = [self.server.state_of("ann") + "/user_tools", self.server.state_of("ann") + "/servers.json",
                   *(f"{self.world.state}/{path}" for path in others)]

        def picture():
            return {path: (files_below(path) if os.path.isdir(path) else read(path)) for path in watched}
        before = picture()
        answer = structured(self.bob.run_modern(ESCAPES, timeout=100))
        self.assertEqual(answer["status"], "success", answer)
        self.assertNotIn("of ann", json.dumps(answer))
        self.assertEqual(answer["stdout"].splitlines()[-1], "tried")
        self.assertEqual(picture(), before)
        for path in ("../../ann/user_tools/x.py", "/projects/../../ann/x", "../ann/x"):
            refused = structured(self.bob.run_modern("print(1)", files=[{"path": path, "text": "of bob"}]))
            self.assertEqual(refused["status"], "validation_error", path)
        self.assertEqual(picture(), before)
        mine = structured(self.ann.run_modern("import user_tools\nfrom mcp.runtime import load_memory\n"
                                              "print(user_tools.greet(), 'of ann' in str(load_memory('note')))"))
        self.assertEqual(mine["stdout"], "of ann True\n")

    def test_another_s_servers_do_not_exist(self):
        self.give_server("ann", "mine", self.world.recorder("record-ann"))
        self.calls(self.ann, "mine")
        used = structured(self.ann.run_modern("print(await mcp_mine.echo(message='of ann'))", servers=["mine"]))
        self.assertEqual(used["stdout"], "of ann\n")
        named = structured(self.bob.run_modern("print(1)", servers=["mine"]))
        unknown = structured(self.bob.run_modern("print(1)", servers=["none"]))
        self.assertEqual(named["status"], "validation_error")
        self.assertEqual(json.dumps(named["error"]).replace("mine", "none"), json.dumps(unknown["error"]))
        look = structured(self.bob.run_modern(
            "from mcp import runtime\n"
            "print(runtime.discovered_servers(), await runtime.list_servers(), await runtime.search_tool_docs('echo'))\n"
            "for ask in (lambda: runtime.call_tool('mine', 'echo', {'message': 'of bob'}), lambda: runtime.list_tools('mine'),\n"
            "            lambda: runtime.query_tool_docs('mine')):\n"
            "    try: print('had', await ask())\n"
            "    except runtime.MCPError as refused: print('refused')"))
        self.assertEqual(look["status"], "success", look)
        self.assertEqual(look["stdout"].splitlines()[-3:], ["refused"] * 3)
        self.assertNotIn("recorder", look["stdout"])
        self.assertNotIn("'mine'", look["stdout"])
        self.assertNotIn("of bob", json.dumps(self.world.recorded("record-ann")))

    def test_the_ledger_tells_nothing_of_others(self):
        structured(self.ann.run_modern("print('of ann')"))
        structured(self.bob.run_modern("print('of bob')"))
        listed = self.bob.ask_modern(2, "resources/list").result()["resources"]
        self.assertNotIn("ledger", json.dumps(listed))
        code = "import os\nprint([os.path.join(p, n) for p, _, names in os.walk('/projects') for n in names])"
        self.assertNotIn("ledger", structured(self.bob.run_modern(code))["stdout"])


ESCAPES = r"""
import os
from mcp import runtime
from mcp.runtime import save_tool, save_memory, load_memory, delete_memory, update_memory, save_file
ways = ["../../ann/user_tools/", "../ann/", "../../../ann/user_tools/memory/", "/projects/../../ann/user_tools/", "..",
        "%2e%2e/ann/", "\x00../ann/", "a/../../../ann/", "..\\ann\\", "~ann/"]
source = "def {0}():\n    return 'of bob'\n"
def attempt(work):
    try: work()
    except Exception as refused: return
for way in ways:
    for name in ("greet", "note", "user_tools.py", "servers.json"):
        for work in (save_memory, update_memory):
            attempt(lambda: work(way + name, "of bob"))
        attempt(lambda: print(load_memory(way + name)))
        attempt(lambda: delete_memory(way + name))
        attempt(lambda: save_file(way + name, b"of bob"))
    def tool(): return "of bob"
    tool.__name__ = tool.__qualname__ = way + "greet"
    attempt(lambda: save_tool(tool))
# Links that the host would have to follow.
for number, target in enumerate(("../../ann", "../../ann/user_tools/memory", "/var/lib/bulkhead", "/")):
    attempt(lambda: os.symlink(target, f"/projects/link{number}"))
attempt(lambda: os.symlink("../../ann/user_tools/memory", "/projects/memory"))
attempt(lambda: os.symlink("../../ann/user_tools/user_tools.py", "/projects/user_tools.py"))
attempt(lambda: save_memory("linked", "of bob"))
def linked(): return "of bob"
attempt(lambda: save_tool(linked))
for place in ("/projects/link0", "/projects/link1", "/projects/memory"):
    attempt(lambda: print(os.listdir(place)))
print("tried")
"""


class Sharing(ServeTest):
    """Kind 26: both are configured with the same server, and neither's connection is ever the other's."""

    def test_one_definition_two_processes(self):
        shared = self.world.path("shared.json")
        with open(shared, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"mine": self.world.odd_server()}}, file)
        self.world.settle()
        self.server.variables["MCP_SERVERS_CONFIG"] = shared
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.ann, self.bob = self.server.of("ann"), self.server.of("bob")
        pids = {}
        for _ in range(2):
            for name, client in (("ann", self.ann), ("bob", self.bob)):
                answer = structured(client.run_modern("print(await mcp_mine.pid())", servers=["mine"]))
                self.assertEqual(answer["status"], "success", answer)
                pids.setdefault(name, set()).add(answer["stdout"])
        self.assertEqual({name: len(each) for name, each in pids.items()}, {"ann": 1, "bob": 1})
        self.assertNotEqual(pids["ann"], pids["bob"])


class Crashes(AttackTest):
    """Kinds 33 and 34."""

    MORE = "concurrent_runs = 1\n"

    def test_two_at_once_do_not_time_out_each_other(self):
        """They take more than either's time together, one after the other; the wait for the turn counts against none."""
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            both = [threads.submit(lambda client=client: structured(client.run_modern(
                "import time\ntime.sleep(8)\nprint('whole')", timeout=14))) for client in (self.ann, self.bob)]
            for each in both:
                self.assertEqual(each.result().get("stdout"), "whole\n", each.result())

    def test_a_server_that_crashes_is_told_at_once(self):
        for name in ("ann", "bob"):
            self.give_server(name, "mine", self.world.odd_server())
        for client in (self.ann, self.bob):
            self.calls(client, "mine")
        died = structured(self.ann.run_modern("import time\nbegun = time.monotonic()\n"
                                              "try: await mcp_mine.die()\n"
                                              "except Exception as reason: print('told', time.monotonic() - begun < 60)",
                                              servers=["mine"], timeout=100))
        self.assertEqual(died.get("stdout"), "told True\n", died)
        other = structured(self.bob.run_modern("print(await mcp_mine.echo(message='unharmed'))", servers=["mine"]))
        self.assertEqual(other.get("stdout"), "unharmed\n", other)

    def test_a_sandbox_that_dies_is_told_at_once(self):
        going = self.ann.run_modern(SLEEP, meta={"progressToken": 1})
        wait_for_start(going)
        for pid in self.guests():
            os.kill(pid, signal.SIGKILL)
        answer = going.messages()[-1]
        self.assertNotEqual(answer["result"]["structuredContent"]["status"], "success")
        self.assertNotEqual(answer["result"]["structuredContent"]["status"], "timeout")
        self.assert_unharmed()


class Logs(AttackTest):
    """A record is one line, whatever names it tells."""

    FORGED = "2000-01-01T00:00:00.000 bulkhead/ann error forged"
    NAME = "x\n" + FORGED + "\r\x1b[2J\u2028" + FORGED

    def setUp(self):
        super().setUp()
        self.server.stop()
        self.server.variables["MCP_BRIDGE_LOG_LEVEL"] = "debug"
        self.server.start()
        self.ann, self.bob = self.server.of("ann"), self.server.of("bob")

    def test_names_forge_no_lines(self):
        catalogue = self.world.path("catalogue.json")
        with open(catalogue, "w", encoding="utf-8") as file:
            json.dump({"name": self.NAME, "version": self.NAME,
                       "tools": [{"name": self.NAME, "description": self.NAME, "inputSchema": {"type": "object"}}]}, file)
        self.world.settle()
        self.give_server("bob", "odd", {"command": "/usr/bin/python3",
                                        "args": [self.world.path("catalogue_server.py"), catalogue]})
        self.calls(self.bob, "odd")
        forged = repr(self.NAME)
        code = ("from mcp import runtime\n"
                "for server, tool in (('odd', NAME), (NAME, 'x'), ('odd', 'x' + NAME)):\n"
                "    for ask in (lambda: runtime.call_tool(server, tool, {NAME: NAME}), lambda: runtime.query_tool_docs(server, tool),\n"
                "                lambda: runtime.search_tool_docs(NAME)):\n"
                "        try: await ask()\n"
                "        except Exception as refused: pass\n").replace("NAME", forged)
        self.assertEqual(structured(self.bob.run_modern(code, servers=["odd"]))["status"], "success")
        structured(self.bob.run_modern("print(1)", servers=[self.NAME]))
        structured(self.bob.run_modern("print(1)", session=self.NAME))
        for method, params in (("initialize", {"protocolVersion": self.NAME, "capabilities": {},
                                               "clientInfo": {"name": self.NAME, "version": self.NAME}}),
                               (self.NAME, {}), ("tools/call", {"name": self.NAME, "arguments": {self.NAME: 1}})):
            self.bob.ask(message=rpc(self.NAME, method, params)).text()
        session = self.bob.open_session()
        session.ask(self.NAME, "tools/call", {"name": self.NAME, "arguments": {}}).text()
        session.tell("notifications/cancelled", {"requestId": self.NAME, "reason": self.NAME})
        self.assertEqual(self.server.stop(), 0)
        log = self.server.log_text()
        self.assertIn("odd", log)
        for line in log.splitlines():
            self.assertFalse(line.startswith("2000-"), line)
        self.assertNotIn("\x1b", log)
        self.assertNotIn("\r", log)


if __name__ == "__main__":
    unittest.main()
