"""Real MCP servers from npm that ask, tell and change in the middle of calls, behind a client that can be asked."""

import json
import os
import textwrap
import unittest

import npm_clients
from npm_clients import Launcher, SdkClient
import test_npm_servers
from world import World

CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
ANSWERS = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada Lovelace"}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "It is Paris."}, "model": "m"},
}


def setUpModule():
    npm_clients.install()


def servers(world):
    found = test_npm_servers.NpmServers.servers(world)
    told = world.path("told of")
    os.mkdir(told)
    with open(os.path.join(told, "there.txt"), "w", encoding="utf-8") as file:
        file.write("in a root")
    return {"everything": found["everything"], "files": found["files"],
            "rooted": {**found["files"], "roots": [told]}}


class NpmAsking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World(servers)

    @classmethod
    def tearDownClass(cls):
        try:
            for instance in cls.world.instances:
                cls.world.assert_clean(instance, alive=False)
        finally:
            cls.world.close()

    def connect(self, capabilities=None):
        client = SdkClient("sdk1")
        self.addCleanup(client.close)
        if capabilities:
            client.do("answer", capabilities=capabilities, answers=ANSWERS)
        launcher = Launcher(self.world)
        client.do("connect", command=launcher.path)
        launcher.running()
        return client

    def run_well(self, client, code, **more):
        answer = client.run(textwrap.dedent(code), timeout=90, **more)["structuredContent"]
        self.assertEqual(answer["status"], "success", answer)
        return answer

    def test_a_model_and_a_person_are_asked(self):
        client = self.connect(CAPABILITIES)
        answer = self.run_well(client, """
            print(await mcp_everything.trigger_sampling_request(prompt="Capital of France?", maxTokens=9))
            print(await mcp_everything.trigger_elicitation_request())
            print(await mcp_everything.trigger_url_elicitation(url="https://a.example/x", message="Sign in"))
            """, servers=["everything"])
        self.assertIn("It is Paris.", answer["stdout"])
        self.assertIn("Ada Lovelace", answer["stdout"])
        sampling, form, page = client.asked
        self.assertIn("Capital of France?", json.dumps(sampling["params"]["messages"]))
        self.assertNotIn("includeContext", sampling["params"])
        self.assertIn("name", form["params"]["requestedSchema"]["properties"])
        self.assertEqual((page["params"]["mode"], page["params"]["url"]), ("url", "https://a.example/x"))
        for each in (form, page):
            self.assertIn("everything", each["params"]["message"])

    def test_a_page_to_be_opened_first_is_told(self):
        client = self.connect(CAPABILITIES)
        answer = self.run_well(client, """
            from mcp.runtime import MCPError
            try:
                await mcp_everything.trigger_url_elicitation(url="https://a.example/y", message="m", errorPath=True)
            except MCPError as e:
                print(e.code, e.server, e.tool, e)
            """, servers=["everything"])
        self.assertIn("unavailable everything trigger_url_elicitation", answer["stdout"])
        self.assertIn("https://modelcontextprotocol.io", answer["stdout"])

    def test_a_client_that_can_not_be_asked_hides_what_asks(self):
        answer = self.run_well(self.connect(), "print(dir(mcp_everything))", servers=["everything"])
        self.assertIn("'echo'", answer["stdout"])
        self.assertNotIn("trigger_sampling_request", answer["stdout"])
        self.assertNotIn("trigger_elicitation_request", answer["stdout"])

    def test_progress(self):
        client = self.connect()
        run = client.start_run("await mcp_everything.trigger_long_running_operation(duration=2, steps=4)",
                               servers=["everything"], progress=True)
        self.assertIn("completed", run.value()["structuredContent"]["result"])
        told = [step["message"] for step in run.progress if "everything/trigger-long-running-operation" in step["message"]]
        self.assertTrue(told and all(" of 4" in each for each in told), run.progress)
        numbers = [step["progress"] for step in run.progress]
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_tools_that_need_tasks_are_hidden_and_counted(self):
        answer = self.run_well(self.connect(CAPABILITIES), "print(dir(mcp_everything))", servers=["everything"])
        self.assertIn("trigger_sampling_request", answer["stdout"])
        self.assertNotIn("simulate_research_query", answer["stdout"])
        shown = json.loads(self.world.command("servers", "--tools", "--json").stdout)
        hidden = {server["name"]: server["hiddenTools"] for server in shown["servers"]}
        self.assertEqual(hidden, {"everything": 1, "files": 0, "rooted": 0})

    def test_roots_take_the_place_of_a_servers_own_folders(self):
        code = """
            from mcp.runtime import MCPError
            for server in (mcp_files, mcp_rooted):
                print(await server.list_allowed_directories())
            print(await mcp_rooted.read_text_file(path=TOLD + "/there.txt"))
            try:
                await mcp_rooted.read_text_file(path=DATA + "/greeting.txt")
            except MCPError as e:
                print(e.code)
            print(await mcp_files.read_text_file(path=DATA + "/greeting.txt"))
            """
        data, told = self.world.path("data"), self.world.path("told of")
        names = f"DATA, TOLD = {data!r}, {told!r}\n"
        answer = self.run_well(self.connect(), names + textwrap.dedent(code), servers=["files", "rooted"])
        self.assertEqual(answer["stdout"].count(told), 1, answer["stdout"])
        self.assertIn("in a root", answer["stdout"])
        self.assertIn("tool_error", answer["stdout"])
        self.assertIn("a greeting", answer["stdout"])


if __name__ == "__main__":
    unittest.main()
