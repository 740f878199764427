"""Bulkhead with the clients that people use: the official SDKs in both eras of MCP, and the Inspector."""

import base64
import json
import os
import signal
import subprocess
import unittest

import npm_clients
from host import patience, wait_until
from instances import guests_of
from npm_clients import Launcher, SdkClient, inspector_command, run_inspector
from stdio_client import children_of, command_line
from world import World

CAPABILITIES = "bulkhead://capabilities"
# An image of one pixel.
DOT = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")


def setUpModule():
    npm_clients.install()


def text_of(result):
    return "\n".join(block["text"] for block in result["content"])


class ClientTest(unittest.TestCase):
    """A world with one upstream server, and a script that starts Bulkhead in it."""

    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"recorder": world.recorder("record")})
        cls.launcher = Launcher(cls.world)

    @classmethod
    def tearDownClass(cls):
        try:
            for instance in cls.world.instances:
                cls.world.assert_clean(instance, alive=False)
        finally:
            cls.world.close()

    def wait_for_guest(self):
        """Waits until code runs in a sandbox; the instance that it belongs to."""
        def look():
            return [each for each in self.launcher.running() if guests_of(each)]
        return wait_until(look, 30, "a guest runs")[0]

    def wait_for_no_guest(self, instance):
        wait_until(lambda: not guests_of(instance), 10, "the guest is gone")


class SdkTests:
    """What every SDK must be able to do; subclasses say which, and what it should find."""

    flavour = ()
    version = None
    modern = False
    resource_not_found = -32602

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = SdkClient(*cls.flavour)
        try:
            cls.connected = cls.client.do("connect", command=cls.launcher.path)
        except BaseException:
            cls.tearDownClass()
            raise
        cls.launcher.running()

    @classmethod
    def tearDownClass(cls):
        try:
            status = cls.client.close()
            if status != 0:
                raise AssertionError(f"the client ended with {status}")
        finally:
            super().tearDownClass()

    def test_handshake(self):
        self.assertEqual(self.connected["server"]["name"], "bulkhead")
        self.assertEqual(self.connected["capabilities"],
                         {"tools": {}, "prompts": {}, "completions": {}, "logging": {},
                          "resources": {"subscribe": True, "listChanged": True}})
        self.assertTrue(self.connected["server"]["icons"][0]["src"].startswith("data:image/svg+xml"))
        self.assertLessEqual(len(self.connected["instructions"]), 500)
        if self.version:
            self.assertEqual(self.connected["version"], self.version)

    def test_tools(self):
        tools = self.client.do("listTools")["tools"]
        self.assertEqual([tool["name"] for tool in tools], ["run_python"])
        self.assertEqual(tools[0]["inputSchema"]["required"], ["code"])

    def test_run(self):
        result = self.client.run("print('hello')\n6 * 7")
        self.assertFalse(result.get("isError"))
        self.assertIn("hello", text_of(result))
        structured = result["structuredContent"]
        self.assertEqual((structured["status"], structured["stdout"], structured["result"]),
                         ("success", "hello\n", 42))

    def test_failing_code(self):
        result = self.client.run("raise ValueError('no such luck')")
        self.assertTrue(result["isError"])
        self.assertIn("ValueError: no such luck", text_of(result))

    def test_upstream_server(self):
        result = self.client.run("print(await mcp_recorder.echo(message='through'))", servers=["recorder"])
        self.assertEqual(result["structuredContent"]["stdout"], "through\n")
        self.assertIn({"tool": "echo", "arguments": {"message": "through"}}, self.world.recorded("record"))

    def test_bad_arguments(self):
        result = self.client.run("1", servers=["recoder"])
        self.assertTrue(result["isError"])
        self.assertEqual(result["structuredContent"]["status"], "validation_error")
        self.assertIn('did you mean "recorder"?', text_of(result))

    def test_unknown_tool(self):
        error = self.client.start("callTool", name="run_ruby", arguments={}).error()
        self.assertEqual(error["code"], -32602)

    def test_resource(self):
        resources = self.client.do("listResources")["resources"]
        self.assertEqual(resources[0]["uri"], CAPABILITIES)
        content = self.client.do("readResource", uri=CAPABILITIES)["contents"][0]
        self.assertEqual(content["mimeType"], "text/markdown")
        self.assertIn("search_tool_docs", content["text"])
        self.assertIn("`recorder`", content["text"])

    def test_artifacts(self):
        result = self.client.run("save_file('data.bin', bytes(range(256)))\nprint('x' * 50_000)\n"
                                 "from base64 import b64decode\n"
                                 f"save_file('dot.png', b64decode('{DOT}'))")
        self.assertEqual([block["type"] for block in result["content"]], ["text", "image", "resource_link"])
        self.assertEqual((result["content"][1]["data"], result["content"][1]["mimeType"]), (DOT, "image/png"))
        entries = result["structuredContent"]["artifacts"]
        self.assertEqual([entry["name"] for entry in entries], ["data.bin", "dot.png"])
        self.assertEqual(result["content"][2]["uri"], entries[0]["uri"])
        blob = self.client.do("readResource", uri=entries[0]["uri"])["contents"][0]["blob"]
        self.assertEqual(base64.b64decode(blob), bytes(range(256)))
        whole = result["structuredContent"]["truncated"]["stdout"]["uri"]
        text = self.client.do("readResource", uri=whole)["contents"][0]["text"]
        self.assertEqual(text, "x" * 50_000 + "\n")
        part = self.client.do("readResource", uri=whole + "?offset=49998&length=10")["contents"][0]
        self.assertEqual(part["text"], "xx\n")
        known = [resource["uri"] for resource in self.client.do("listResources")["resources"]]
        for uri in (whole, *(entry["uri"] for entry in entries)):
            self.assertIn(uri, known)
        templates = self.client.do("listTemplates")["resourceTemplates"]
        self.assertEqual([each["name"] for each in templates], ["output", "artifact"])

    def test_unknown_resource(self):
        error = self.client.start("readResource", uri="bulkhead://nothing").error()
        self.assertEqual(error["code"], self.resource_not_found)

    def test_prompt(self):
        name = self.client.do("listPrompts")["prompts"][0]["name"]
        result = self.client.do("getPrompt", name=name, arguments={"task": "count to ten"})
        text = result["messages"][0]["content"]["text"]
        self.assertIn("count to ten", text)
        self.assertIn("recorder", text)
        self.assertEqual(self.client.start("getPrompt", name="other").error()["code"], -32602)

    def test_completion(self):
        name = self.client.do("listPrompts")["prompts"][0]["name"]
        result = self.client.do("complete", ref={"type": "ref/prompt", "name": name},
                                argument={"name": "server", "value": "re"})
        self.assertEqual(result["completion"]["values"], ["recorder"])
        made = self.client.run("save_file('completed.bin', b'x')")["structuredContent"]["artifacts"][0]
        template = self.client.do("listTemplates")["resourceTemplates"][1]["uriTemplate"]
        result = self.client.do("complete", ref={"type": "ref/resource", "uri": template},
                                argument={"name": "handle", "value": ""})
        self.assertIn(made["uri"].split("/")[3], result["completion"]["values"])

    def test_new_resources_are_told(self):
        self.client.do("subscribe", uri=CAPABILITIES)
        before = len(self.client.changes)
        self.client.run("save_file('told.bin', b'x')")
        wait_until(lambda: len(self.client.changes) > before, 10, "the client is told of a resource")
        self.assertEqual(self.client.changes[-1]["method"], "notifications/resources/list_changed")

    def test_output_schema(self):
        uri = self.client.do("listTools")["tools"][0]["_meta"]["bulkhead/outputSchema"]
        schema = json.loads(self.client.do("readResource", uri=uri)["contents"][0]["text"])
        answer = self.client.run("print(1)")["structuredContent"]
        self.assertLessEqual(set(schema["required"]), set(answer))
        self.assertLessEqual(set(answer), set(schema["properties"]))

    def test_progress(self):
        # The SDKs lose a notification that arrives together with the answer.
        run = self.client.start_run("import time\ntime.sleep(0.5)", progress=True)
        run.value()
        stages = [step["message"] for step in run.progress if not step["message"].endswith(" s")]
        self.assertEqual(stages, ["queued", "booting", "running"])
        values = [step["progress"] for step in run.progress]
        self.assertEqual(values, sorted(set(values)))

    def test_logs(self):
        if self.modern:
            self.client.run("1", meta={"io.modelcontextprotocol/logLevel": "info"})
        else:
            self.client.do("setLogLevel", level="info")
            self.client.run("1")
        self.assertTrue(any(log["data"].get("event") == "run ended" for log in self.client.logs))

    def test_cancel_and_overlap(self):
        run = self.client.start_run("import time\ntime.sleep(100)", timeout=110)
        instance = self.wait_for_guest()
        self.assertEqual(self.client.run("print('meanwhile')")["structuredContent"]["stdout"],
                         "meanwhile\n")
        self.assertFalse(run.done)
        self.client.cancel(run)
        run.error()
        self.wait_for_no_guest(instance)
        self.assertEqual(self.client.run("print('after')")["structuredContent"]["stdout"], "after\n")


class Sdk1(SdkTests, ClientTest):
    flavour = ("sdk1",)
    resource_not_found = -32002  # The newer SDK turns it into the newer code.

    def test_ping(self):
        self.assertEqual(self.client.do("ping"), {})


class Sdk2Legacy(SdkTests, ClientTest):
    flavour = ("sdk2",)
    version = "2025-11-25"


class Sdk2Auto(SdkTests, ClientTest):
    flavour = ("sdk2", "auto")
    version = "2026-07-28"
    modern = True


class Sdk2Pinned(SdkTests, ClientTest):
    flavour = ("sdk2", "2026-07-28")
    version = "2026-07-28"
    modern = True


class CheckedOutput(ClientTest):
    """SDKs check `structuredContent` by the output schema where a definition has one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.world.variables["MCP_BRIDGE_OUTPUT_SCHEMA"] = "1"
        cls.launcher = Launcher(cls.world)

    def test_every_answer_fits(self):
        for flavour in (("sdk1",), ("sdk2", "auto")):
            with self.subTest(flavour[0]):
                client = SdkClient(*flavour)
                self.addCleanup(client.close)
                client.do("connect", command=self.launcher.path)
                self.launcher.running()
                schema = client.do("listTools")["tools"][0]["outputSchema"]
                self.assertEqual(schema["type"], "object")
                for code in ("print(1)", "{'a': [1, None]}", "1/0", "save_file('a', b'x' * 9)",
                             "print('x' * 50_000)", "object()", ""):
                    client.run(code)


class InspectorTests:
    number = 0
    options = ()

    def ask(self, method, *arguments):
        return run_inspector(self.number, self.launcher, *self.options, "--method", method, *arguments)

    def test_tools(self):
        self.assertEqual([tool["name"] for tool in self.ask("tools/list")["tools"]], ["run_python"])

    def test_run(self):
        result = self.ask("tools/call", "--tool-name", "run_python", "--tool-arg", "code=print(6*7)")
        self.assertEqual(result["structuredContent"]["stdout"], "42\n")

    def test_resource(self):
        self.assertEqual(self.ask("resources/list")["resources"][0]["uri"], CAPABILITIES)
        text = self.ask("resources/read", "--uri", CAPABILITIES)["contents"][0]["text"]
        self.assertIn("`recorder`", text)

    def test_ending_the_client_ends_the_run(self):
        command = inspector_command(self.number, self.launcher, *self.options, "--method", "tools/call",
                                    "--tool-name", "run_python",
                                    "--tool-arg", "code=import time; time.sleep(100)", "timeout=110")
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as inspector:
            try:
                instance = self.wait_for_guest()
            finally:
                # Version 1 has its client in a second process.
                for pid in [inspector.pid, *children_of(inspector.pid)]:
                    if os.path.basename((command_line(pid) or [""])[0]) == "node":
                        os.kill(pid, signal.SIGKILL)
            inspector.wait(patience(10))
        self.world.assert_clean(instance, alive=False, seconds=15)


class Inspector1(InspectorTests, ClientTest):
    number = 1


class Inspector2(InspectorTests, ClientTest):
    number = 2

    def test_strict(self):
        self.ask("tools/list", "--strict")


class Inspector2Modern(Inspector2):
    options = ("--protocol-era", "modern")


if __name__ == "__main__":
    unittest.main()
