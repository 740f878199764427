"""What upstream servers ask in the middle of a call, answered by the clients that people use, in both eras."""

import json
import unittest

import npm_clients
from host import patience
from npm_clients import Launcher, SdkClient
from world import BulkheadTest, World

FORM = {"elicitation": {"form": {}}}
ALL = {**FORM, "sampling": {}}
YES = {"action": "accept", "content": {"sure": True}}
PARIS = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m", "stopReason": "endTurn"}
SHOW = "import json\nprint(json.dumps(await mcp_asking.{}()))"


def setUpModule():
    npm_clients.install()


class QuestionTests:
    """Subclasses say which SDK."""

    flavour = ()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"asking": world.asking_server()})

    @classmethod
    def tearDownClass(cls):
        try:
            for instance in cls.world.instances:
                cls.world.assert_clean(instance, alive=False)
        finally:
            cls.world.close()

    def connect(self, capabilities, answers):
        client = SdkClient(*self.flavour)
        self.addCleanup(client.close)
        if capabilities:
            client.do("answer", capabilities=capabilities, answers=answers)
        launcher = Launcher(self.world)
        client.do("connect", command=launcher.path)
        launcher.running()
        return client

    def ask(self, client, tool):
        answer = client.run(SHOW.format(tool), servers=["asking"])["structuredContent"]
        self.assertEqual(answer["status"], "success", answer)
        return json.loads(answer["stdout"])

    def test_a_person_is_asked(self):
        client = self.connect(ALL, {"elicitation/create": YES})
        self.assertEqual(self.ask(client, "confirm")["result"], YES)
        self.assertEqual(len(client.asked), 1)
        asked = client.asked[0]
        self.assertEqual(asked["params"]["message"], 'MCP server "asking" asks: Delete it all?')
        self.assertEqual(asked["params"]["requestedSchema"]["required"], ["sure"])

    def test_a_person_declines(self):
        client = self.connect(FORM, {"elicitation/create": {"action": "decline"}})
        self.assertEqual(self.ask(client, "confirm")["result"], {"action": "decline"})

    def test_a_model_is_asked(self):
        client = self.connect(ALL, {"sampling/createMessage": PARIS})
        self.assertEqual(self.ask(client, "complete")["result"]["content"]["text"], "Paris")
        self.assertEqual(client.asked[0]["params"]["maxTokens"], 9)

    def test_several_at_once_and_one_after_another(self):
        client = self.connect(ALL, {"elicitation/create": YES, "sampling/createMessage": PARIS})
        code = ("import asyncio\n"
                "first = await asyncio.gather(*(mcp_asking.confirm() for _ in range(3)), mcp_asking.complete())\n"
                "second = await mcp_asking.confirm()\n"
                "[each.get('result', each) for each in [*first, second]]")
        answer = client.run(code, servers=["asking"])["structuredContent"]
        self.assertEqual(answer["status"], "success", answer)
        self.assertEqual(answer["result"], [YES, YES, YES, PARIS, YES])
        self.assertEqual(len(client.asked), 5)

    def test_only_what_the_client_can_be_asked_is_declared(self):
        client = self.connect(FORM, {"elicitation/create": YES})
        self.assertIn("elicitation", self.ask(client, "confirm")["declared"])
        refused = self.ask(client, "complete")
        self.assertNotIn("sampling", refused["declared"])
        self.assertIn("error", refused)
        self.assertEqual([each["method"] for each in client.asked], ["elicitation/create"])

    def test_a_client_that_can_not_be_asked(self):
        client = self.connect(None, {})
        refused = self.ask(client, "confirm")
        self.assertIn("error", refused)
        self.assertEqual(refused["declared"], {})


class Sdk1(QuestionTests, unittest.TestCase):
    flavour = ("sdk1",)


class Sdk2Legacy(QuestionTests, unittest.TestCase):
    flavour = ("sdk2",)


class Sdk2Modern(QuestionTests, unittest.TestCase):
    flavour = ("sdk2", "auto")


class OnTheWire(BulkheadTest):
    """The rounds of the modern era, message by message."""

    servers = staticmethod(lambda world: {"asking": world.asking_server()})
    META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": FORM}

    def call(self, code, **more):
        params = {"name": "run_python", "arguments": {"code": code, "servers": ["asking"]}, **more}
        return self.client.request("tools/call", params, self.META)

    def test_a_state_is_good_once(self):
        code = SHOW.format("confirm")
        asked = self.call(code).result(patience(60))
        self.assertEqual(asked["resultType"], "input_required")
        (key, question), = asked["inputRequests"].items()
        self.assertEqual(question["method"], "elicitation/create")
        state = asked["requestState"]
        for bad in (state + "-TAMPERED", state[:-1]):
            reply = self.call(code, requestState=bad, inputResponses={key: YES})
            self.assertEqual(reply.message(patience(30))["error"]["code"], -32602)
        reply = self.call(code + "\n", requestState=state, inputResponses={key: YES})
        self.assertEqual(reply.message(patience(30))["error"]["code"], -32602)
        again = self.call(code, requestState=state, inputResponses={}).result(patience(30))
        self.assertEqual((again["resultType"], list(again["inputRequests"])), ("input_required", [key]))
        self.assertNotEqual(again["requestState"], state)
        done = self.call(code, requestState=again["requestState"], inputResponses={key: YES}).result(patience(60))
        self.assertEqual(done["resultType"], "complete")
        self.assertEqual(json.loads(done["structuredContent"]["stdout"])["result"], YES)
        for used in (state, again["requestState"]):
            reply = self.call(code, requestState=used, inputResponses={key: YES})
            self.assertEqual(reply.message(patience(30))["error"]["code"], -32602)


if __name__ == "__main__":
    unittest.main()
