"""Changed configuration files count without a restart: new servers are there, changed ones start anew, and what is
denied is denied at once, also to code that runs."""

import json
import os

from host import account, is_root, patience, wait_until
from world import BulkheadTest

# Calls the server `calls` until a flag is there, and prints what became of each kind of call.
CALLING = """
import asyncio, os
seen = []
for _ in range(2000):
    try:
        await mcp_servers['calls'].echo(message='x')
        what = 'called'
    except Exception as refused:
        what = str(refused)
    if not seen or seen[-1] != what:
        seen.append(what)
        print(what, flush=True)
    if len(seen) == 2:
        break
    await asyncio.sleep(0.1)
"""


class Reload(BulkheadTest):
    marks = 0

    @staticmethod
    def servers(world):
        return {"calls": world.recorder("calls"), "other": world.recorder("other")}

    def tearDown(self):
        """As at the start."""
        for name in os.listdir(self.world.state):
            if name.endswith(".json") and name != "servers.json":
                os.unlink(os.path.join(self.world.state, name))
        self.put("servers.json", {"mcpServers": self.servers(self.world)})
        # All files are read together: what shows this has the others, too.
        Reload.marks += 1
        mark = f"mark-{Reload.marks}."
        self.put("mark.json", {"mcpServers": {mark: {"command": "/bin/true"}}})
        self.wait_for(lambda text: mark in text, "what there was at the start")

    def put(self, name, content):
        """Writes a file as editors do, and for the account."""
        path = os.path.join(self.world.state, name)
        self.world.write_config(name + ".new", content)
        if is_root():
            os.chown(path + ".new", account().pw_uid, account().pw_gid)
        os.chmod(path + ".new", 0o644)
        os.rename(path + ".new", path)

    def guide(self):
        reply = self.client.request("resources/read", {"uri": "bulkhead://capabilities"})
        return reply.result(patience(30))["contents"][0]["text"]

    def wait_for(self, condition, what):
        return wait_until(lambda: condition(self.guide()), 30, what)

    def log(self):
        return self.world.log_of(self.client)

    def test_a_new_server_is_there_for_the_next_run(self):
        self.put("more.json", {"mcpServers": {"added": self.world.recorder("added")}})
        self.wait_for(lambda text: "added" in text, "the new server is known")
        self.run_well("print(await mcp_added.echo(message='x'))", ["added"])
        self.assertEqual(len(self.world.recorded("added")), 1)
        os.unlink(os.path.join(self.world.state, "more.json"))
        self.wait_for(lambda text: "added" not in text, "the server is gone")
        answer = self.run_code("print(1)", ["added"])
        self.assertEqual(answer["status"], "validation_error")
        self.assertIn("gone: added", self.log())

    def test_a_changed_server_starts_anew_and_an_unchanged_one_does_not(self):
        show = "import os\nprint((await mcp_calls.echo(message='x')), (await mcp_other.echo(message='x')))"
        self.run_well(show, ["calls", "other"])
        before = self.log()
        servers = self.servers(self.world)
        servers["calls"] = self.world.recorder("changed")
        self.put("servers.json", {"mcpServers": servers})
        wait_until(lambda: "changed: calls" in self.log()[len(before):], 30, "the change is noticed")
        self.run_well(show, ["calls", "other"])
        self.assertEqual(len(self.world.recorded("changed")), 1)
        self.assertIn('"calls" is configured differently now', self.log()[len(before):])
        self.assertNotIn('"other" is configured differently now', self.log()[len(before):])

    def deny_while_running(self, name, content, word):
        reply = self.start(CALLING, ["calls"])
        before = len(self.world.recorded("calls"))
        wait_until(lambda: len(self.world.recorded("calls")) > before, 60, "the code calls")
        self.put(name, content)
        answer = self.answer(reply)
        self.assert_success(answer)
        lines = answer["stdout"].splitlines()
        self.assertEqual((lines[0], len(lines)), ("called", 2), answer)
        self.assertIn(word, lines[1])

    def test_a_denial_reaches_running_code(self):
        self.deny_while_running("policy.json", {"policy": {"deny": ["calls/echo"]}}, "denied by policy now")

    def test_a_bad_file_closes_everything(self):
        self.deny_while_running("policy.json", "{ broken", "policy.json")
        self.wait_for(lambda text: "policy.json" in text, "all are told why")

    def test_a_removed_server_is_out_of_reach(self):
        self.deny_while_running("servers.json", {"mcpServers": {"other": self.world.recorder("other")}},
                                "isn't configured any more")

    def test_a_session_keeps_within_what_it_was_made_with(self):
        before = len(self.log())
        self.put("policy.json", {"policy": {"deny": ["calls/fail"]}})
        wait_until(lambda: "the policy is another" in self.log()[before:], 30, "the policy is noticed")
        made = self.client.start_run("kept = 1", ["calls"], session="new").result(patience(90))["structuredContent"]
        before = len(self.log())
        os.unlink(os.path.join(self.world.state, "policy.json"))
        wait_until(lambda: "the policy is another" in self.log()[before:], 30, "the policy is noticed")
        code = ("try:\n    await mcp_servers['calls'].fail(message='reached')\nexcept Exception as refused:\n"
                "    print(kept, refused)")
        answer = self.client.start_run(code, session=made["session"]).result(patience(90))["structuredContent"]
        self.assertIn("denied by policy", answer["stdout"])
        answer = self.run_code(code.replace("kept, ", ""), ["calls"])
        self.assertIn("reached", answer["stdout"])

    def test_a_linked_file_is_followed(self):
        linked = self.world.path("mcp.json")
        with open(linked, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {}}, file)
        self.put("imported-cursor.json", {"import": {
            "host": "cursor", "linked": True, "home": self.world.folder,
            "files": [{"file": linked, "scope": "user"}]}})
        self.put("more.json", {"mcpServers": {"added-marker": {"command": "/bin/true"}}})
        self.wait_for(lambda text: "added-marker" in text, "the link is known")
        with open(linked, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"linked-added": {"command": "/bin/true"}}}, file)
        self.wait_for(lambda text: "linked-added" in text, "the linked file's server is known")


if __name__ == "__main__":
    import unittest

    unittest.main()
