"""Code that attacks the host by way of the frame channel and its own processes. Whatever it does: no tool is
called that the run may not call, the client gets a typed answer in time, memory stays bounded, the server goes
on, and nothing is left."""

import json
import zlib

from host import read
from hostile import HostileTest

# What a forged frame does to its run: the code after it goes on ("success"), or the run is ended.
MISUSE = {
    "nothing at all": (b"\n\n\n", "success"),
    "a number": (b"123\n", "malformed"),
    "null": (b"null\n", "malformed"),
    "an array": (b"[]\n", "malformed"),
    "a string": (b'"ready"\n', "malformed"),
    "no JSON": (b"Traceback (most recent call last):\n", "malformed"),
    "half an object": (b'{"type":"stdout","data":"x\n', "malformed"),
    "two objects": (b'{"type":"stdout","data":"x"}{"type":"stdout","data":"y"}\n', "malformed"),
    "no type": (b'{"data":"x"}\n', "malformed"),
    "two types": (b'{"type":"stdout","type":"done","data":"x"}\n', "malformed"),
    "unknown type": (b'{"type":"artifact","name":"x"}\n', "malformed"),
    "type of the host": (b'{"type":"execute","id":"x","code":"print(1)"}\n', "malformed"),
    "another type of the host": (b'{"type":"rpc_response","id":1,"success":true,"payload":1}\n', "malformed"),
    "NUL bytes": (b"\0" * 1000 + b"\n", "malformed"),
    "bad UTF-8": (b'{"type":"stdout","data":"\xff\xfe"}\n', "malformed"),
    "overlong UTF-8": (b'{"type":"stdout","data":"\xc0\xaf"}\n', "malformed"),
    "surrogates": (b'{"type":"stdout","data":"\xed\xa0\x80"}\n', "malformed"),
    "a byte order mark": (b'\xef\xbb\xbf{"type":"stdout","data":"x"}\n', "malformed"),
    "ready again": (b'{"type":"ready","python":"3.13.5","protocol":1}\n', "malformed"),
    "started again": (b'{"type":"started","id":"x"}\n', "malformed"),
    "ready without a version": (b'{"type":"ready"}\n', "malformed"),
    "done of another run": (b'{"type":"done","id":"00000000000000000000000000000000","exitCode":0}\n', "malformed"),
    "done without an id": (b'{"type":"done","exitCode":0}\n', "malformed"),
    "done with an object as id": (b'{"type":"done","id":{},"exitCode":0}\n', "malformed"),
    "both kinds of data": (b'{"type":"stdout","data":"x","b64":"eA=="}\n', "malformed"),
    "no data": (b'{"type":"stdout"}\n', "malformed"),
    "data that is no text": (b'{"type":"stdout","data":[1]}\n', "malformed"),
    "bad base64": (b'{"type":"stderr","b64":"!!!"}\n', "malformed"),
    "an output frame over its limit": (b'{"type":"stdout","data":"' + b"x" * 300_000 + b'"}\n', "too_large"),
    "a ready frame over its limit": (b'{"type":"ready","protocol":1,"python":"' + b"3" * 70_000 + b'"}\n',
                                     "too_large"),
    "deep nesting": (b'{"type":"stdout","data":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n", "too_large"),
    "deep objects": (b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n", "too_large"),
    "id -1": (b'{"type":"rpc_request","id":-1,"payload":{"type":"list_servers"}}\n', "malformed"),
    "id 0": (b'{"type":"rpc_request","id":0,"payload":{"type":"list_servers"}}\n', "malformed"),
    "id 1.5": (b'{"type":"rpc_request","id":1.5,"payload":{"type":"list_servers"}}\n', "malformed"),
    "id 1e3": (b'{"type":"rpc_request","id":1e3,"payload":{"type":"list_servers"}}\n', "malformed"),
    "a huge id": (b'{"type":"rpc_request","id":99999999999999999999999,"payload":{"type":"list_servers"}}\n',
                  "malformed"),
    "a text as id": (b'{"type":"rpc_request","id":"1","payload":{"type":"list_servers"}}\n', "malformed"),
    "no id": (b'{"type":"rpc_request","payload":{"type":"list_servers"}}\n', "malformed"),
    "two ids": (b'{"type":"rpc_request","id":900,"id":901,"payload":{"type":"list_servers"}}\n', None),
    "an unknown escape": (b'{"type":"stdout","data":"\\q"}\n', "malformed"),
}

# Frames that are too large to be a literal in the code; each is an expression for it.
LARGE = {
    "64 MiB of empty objects": 'b\'{"type":"stdout","data":[\' + b"{}," * (64 * 2**20 // 3) + b"{}]}\\n"',
    "16 MiB of empty objects": 'b\'{"type":"rpc_request","id":1000,"payload":{"type":"call_tool","server":"open",'
                               '"tool":"echo","arguments":{"a":[\' + b"{}," * (5 * 2**20) + b"{}]}}}\\n"',
    "100 MB without a newline": 'b"x" * 100_000_000',
    "100 MB of digits": 'b\'{"type":"rpc_request","id":\' + b"1" * 100_000_000 + b"}\\n"',
    "100 MB of spaces": 'b" " * 100_000_000 + b"\\n"',
    "a million keys": 'b"{" + b",".join(b\'"%d":0\' % i for i in range(1_000_000)) + b"}\\n"',
}


class Frames(HostileTest):
    def test_code_does_find_the_channel(self):
        """Otherwise all tests here would be empty: what is forged really arrives."""
        answer = self.answer(self.attack("""
forge({"type": "stdout", "data": "forged\\n"})
answers = listen()
forge({"type": "rpc_request", "id": 500, "payload": {"type": "list_servers"}})
print([s["name"] for s in wait_for(answers, [500])[0]["payload"]])
"""))
        self.assertEqual((answer["status"], answer["stdout"]), ("success", "forged\n['open']\n"))

    def test_misused_frames(self):
        names = list(MISUSE)
        for begin in range(0, len(names), 8):
            batch = {name: self.attack("import zlib\n"
                                       f"forge(zlib.decompress({zlib.compress(MISUSE[name][0])!r}))\n"
                                       "time.sleep(0.3)\nprint('went on')")
                     for name in names[begin:begin + 8]}
            for name, reply in batch.items():
                with self.subTest(name):
                    expected = MISUSE[name][1]
                    found = self.outcome(reply)
                    if expected is None:
                        self.assertIn(found, ("malformed", "success"))
                    else:
                        self.assertEqual(found, expected)
        self.after_attack()

    def test_frames_of_great_size(self):
        for name, expression in LARGE.items():
            with self.subTest(name):
                reply = self.attack(f"forge({expression})\ntime.sleep(1)\nprint('went on')", timeout=100)
                answer = self.answer(reply, wait=120)
                # A call that is too large is refused, and its run may go on; all else ends the run.
                if answer["status"] != "success":
                    self.assertIn(answer["error"].get("code"), ("too_large", "malformed", "overloaded"), answer)
                else:
                    self.assertIn("rpc_request", expression)
        self.after_attack()

    def test_several_at_once_share_one_budget(self):
        replies = [self.attack('data = b"x" * 16_000_000\nforge(data)\ntime.sleep(3)', timeout=110)
                   for _ in range(8)]
        for reply in replies:
            self.assertIn(self.outcome(reply), ("success", "malformed", "overloaded"))
        self.after_attack()

    def test_a_forged_done_ends_the_run_it_belongs_to(self):
        """That is the code's own affair; but what comes after it doesn't count."""
        answer = self.answer(self.attack("""
run = session()._run_id
data = b"".join(json.dumps(f).encode() + b"\\n" for f in (
    {"type": "done", "id": run, "exitCode": 9, "result": {"repr": "forged"}},
    call(700, "open", "echo", message="after done"),
    {"type": "stdout", "data": "after done"},
    {"type": "done", "id": run, "exitCode": 0}))
forge(data)
time.sleep(60)
"""))
        self.assertEqual((answer["status"], answer["exitCode"], answer["result"]), ("error", 9, "forged"))
        self.assertNotIn("stdout", answer)
        self.after_attack()
        self.assertNotIn("after done", json.dumps(self.world.recorded("open.calls")))

    def test_results_that_lie(self):
        for frame in ('{"type":"done","id":%s,"exitCode":123456789012345678901234567890}',
                      '{"type":"done","id":%s,"exitCode":-5}',
                      '{"type":"done","id":%s,"exitCode":"0"}',
                      '{"type":"done","id":%s,"exitCode":0,"result":{"repr":5}}',
                      '{"type":"done","id":%s,"exitCode":0,"result":[]}',
                      '{"type":"done","id":%s,"exitCode":0,"error":{"type":1}}',
                      '{"type":"done","id":%s,"exitCode":0,"result":{"repr":"x","value":' + "[" * 100 + "]" * 100 +
                      '}}'):
            with self.subTest(frame[:70]):
                answer = self.answer(self.attack(
                    f"forge(({frame!r} % json.dumps(session()._run_id)).encode() + b'\\n')\ntime.sleep(60)"))
                self.assertIn(answer["status"], ("success", "error"))
        self.after_attack()


class Rights(HostileTest):
    NAMES = ["other-server", "other_server", "forbidden", "FORBIDDEN", "../other-server", "open/../other-server",
             "open\0", "\0open", " open", "open ", "Open", "", ".", "*", "o*", "%6fpen", "other-server/echo",
             "open/other-server", "mcp_other_server", "a" * 5000, "\ud800", "ｏpen"]
    TOOLS = ["fail", "exit", "ex*", "*", "open/fail", "../fail", "fail\0", "fail ", " fail", "Fail", "FAIL", "",
             "echo/../fail", "fa\\u0069l", "mcp_open.fail", "__class__", "t" * 5000]

    def test_servers_that_are_not_the_runs(self):
        answer = self.answer(self.attack(f"""
answers = listen()
names = {self.NAMES!r}
for i, name in enumerate(names):
    forge(call(600 + i, name, "echo", message="mark"))
found = wait_for(answers, range(600, 600 + len(names)))
print(json.dumps([f and f.get("code") for f in found]))
for i, kind in enumerate(("list_tools", "query_tool_docs", "search_tool_docs")):
    for j, name in enumerate(names):
        number = 800 + 50 * i + j
        forge({{"type": "rpc_request", "id": number, "payload":
               {{"type": kind, "server": name, "query": "echo", "detail": "full"}}}})
        answer = wait_for(answers, [number])[0]
        found = answer and answer.get("success") and answer["payload"]
        if found and kind == "search_tool_docs":
            found = found["tools"]
        # A search without a server is one in all that the run has.
        if found and (name or any(t["server"] != "open" for t in found)):
            print("LEAK", kind, repr(name), answer)
"""))
        self.assert_success(answer)
        lines = answer["stdout"].splitlines()
        self.assertEqual(lines[1:], [])
        codes = dict(zip(self.NAMES, json.loads(lines[0])))
        self.assertEqual({name: code for name, code in codes.items()
                          if code not in ("denied", "not_found", "invalid_argument", "too_large")}, {})
        self.assertEqual((codes["other-server"], codes["other_server"]), ("denied", "denied"))
        # A server that policy denies doesn't exist for code.
        self.assertEqual(codes["forbidden"], "not_found")
        self.assertEqual(read(self.world.path("other.starts")), "", "it was started")
        self.after_attack()

    def test_tools_that_policy_denies(self):
        answer = self.answer(self.attack(f"""
answers = listen()
tools = {self.TOOLS!r}
for i, tool in enumerate(tools):
    forge(call(600 + i, "open", tool, message="mark", code=1))
print(json.dumps([f and f.get("code") for f in wait_for(answers, range(600, 600 + len(tools)))]))
forge(call(900, "open", "echo", message="allowed"))
print(json.dumps(wait_for(answers, [900])[0]["success"]))
forge({{"type": "rpc_request", "id": 901, "payload": {{"type": "list_tools", "server": "open"}}}})
print([t["name"] for t in wait_for(answers, [901])[0]["payload"]])
forge({{"type": "rpc_request", "id": 902, "payload": {{"type": "search_tool_docs", "query": "fail exit tool"}}}})
print(sorted(t["tool"] for t in wait_for(answers, [902])[0]["payload"]["tools"]))
"""))
        self.assert_success(answer)
        lines = answer["stdout"].splitlines()
        codes = dict(zip(self.TOOLS, json.loads(lines[0])))
        self.assertEqual({tool: code for tool, code in codes.items()
                          if code not in ("denied", "not_found", "invalid_argument", "too_large")}, {})
        self.assertEqual((codes["fail"], codes["exit"]), ("denied", "denied"))
        self.assertEqual(lines[1], "true")
        for line in lines[2:]:
            self.assertNotIn("fail", line)
            self.assertNotIn("exit", line)
            self.assertIn("echo", line)
        self.assertIn("allowed", json.dumps(self.world.recorded("open.calls")))
        self.after_attack()

    def test_payloads_that_are_no_calls(self):
        answer = self.answer(self.attack("""
answers = listen()
bad = [5, None, [], "call_tool", {}, {"type": 5}, {"type": "call_tool"}, {"type": "shutdown"},
       {"type": "call_tool", "server": "open"}, {"type": "call_tool", "server": ["open"], "tool": "echo"},
       {"type": "call_tool", "server": "open", "tool": {"name": "echo"}},
       {"type": "call_tool", "server": "open", "tool": "echo", "arguments": []},
       {"type": "call_tool", "server": "open", "tool": "echo", "arguments": "{}"},
       {"type": "search_tool_docs", "query": "x", "limit": -1},
       {"type": "search_tool_docs", "query": "x", "limit": 10**9},
       {"type": "search_tool_docs", "query": "x" * 100_000}, {"type": "list_tools"}]
for i, payload in enumerate(bad):
    forge({"type": "rpc_request", "id": 600 + i, "payload": payload})
print(json.dumps([f and f.get("code") for f in wait_for(answers, range(600, 600 + len(bad)))]))
"""))
        self.assert_success(answer)
        codes = json.loads(answer["stdout"])
        self.assertEqual([c for c in codes if c not in ("invalid_argument", "too_large")], [], codes)
        self.after_attack()

    def test_one_id_twice_is_one_call(self):
        """The second would be answered by the first's answer, or the other way round."""
        answer = self.answer(self.attack("""
answers = listen()
forge((json.dumps(call(600, "open", "slow", seconds=0.5, mark="twice")).encode() + b"\\n") * 5)
print(wait_for(answers, [600])[0]["success"])
time.sleep(1)
"""))
        self.assertEqual(answer["stdout"], "True\n")
        calls = [c for c in self.world.recorded("open.calls") if c["arguments"].get("mark") == "twice"]
        self.assertEqual(len(calls), 1)

    def test_more_calls_at_once_than_allowed(self):
        answer = self.answer(self.attack("""
answers = listen()
forge(b"".join(json.dumps(call(600 + i, "open", "slow", seconds=2, mark="many")).encode() + b"\\n"
               for i in range(200)))
found = wait_for(answers, range(600, 800))
print(sum(f.get("success", False) for f in found), sorted({f["code"] for f in found if "code" in f}))
"""))
        self.assert_success(answer)
        self.assertEqual(answer["stdout"], "32 ['limit']\n")
        calls = [c for c in self.world.recorded("open.calls") if c["arguments"].get("mark") == "many"]
        self.assertEqual(len(calls), 32)
        self.after_attack()

    def test_survivors_call_nothing_after_done(self):
        """A thread and a forked process that kept the channel write calls the moment `done` is out."""
        answer = self.answer(self.attack("""
kept = [os.dup(d) for d in frames_out]
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.read(reading, 1)
    frames_out[:] = kept
    for i in range(2000):
        forge(call(5000 + i, "open", "echo", message="survivor process"))
    os._exit(0)
channel = session()._channel
plain = channel.write
def write(frame):
    plain(frame)
    if b'"type":"done"' in frame or b'"type": "done"' in frame:
        forge(call(4000, "open", "echo", message="survivor at once"))
        os.write(writing, b"x")
        def go_on():
            for i in range(2000):
                forge(call(9000 + i, "open", "echo", message="survivor thread"))
        threading.Thread(target=go_on, daemon=True).start()
channel.write = write
await mcp_open.echo(message="before done")
print("the end")
"""))
        self.assert_success(answer)
        self.assertEqual(answer["stdout"], "the end\n")
        self.after_attack()
        calls = json.dumps(self.world.recorded("open.calls"))
        self.assertIn("before done", calls)
        self.assertNotIn("survivor", calls)
