"""The user's MCP servers as they are in practice: slow, noisy, dying, stubborn, with large results and odd names;
and how they are configured."""

import json
import os
import time
import unittest

from host import patience, read, wait_until
from instances import every_process, is_alive, processes_of, zombies_of
from stdio_client import command_line
from world import BINARY, POOLED, PYTHON, BulkheadTest, World

SECRET = "s3cr3t-0123456789-kept-on-the-host"
FAILURE = """
from mcp.runtime import MCPError
import time
begun = time.monotonic()
try:
    {}
except MCPError as e:
    print(e.code, "|", e.message)
"""


class UpstreamTest(BulkheadTest):
    variables = POOLED

    def failure(self, expression, servers, timeout=60):
        """The code and message of the MCPError that an expression raises."""
        answer = self.run_well(FAILURE.format("print('value', await " + expression + ")"), servers, timeout)
        code, _, message = answer["stdout"].partition(" | ")
        return code, message

    def lines_of(self, name):
        return read(self.world.path(name)).splitlines()


class Starting(UpstreamTest):
    @staticmethod
    def servers(world):
        def odd(*behaviours, name, **more):
            return world.odd_server(*behaviours, env={"STARTS": world.path(name)}, **more)
        return {"shared": odd("slow-start=1", name="shared.starts"),
                "unused": odd(name="unused.starts"),
                "cold": odd("slow-start=6", name="cold.starts"),
                "cold-file": odd("slow-start=10", name="cold-file.starts"),
                "too-slow": odd("slow-start=60", name="slow.starts", startTimeout=2),
                "missing": {"command": "/nonexistent/mcp-server"},
                "broken": odd("exit-at-once=no licence found", name="broken.starts"),
                "garbage": odd("garbage", name="garbage.starts", startTimeout=3),
                "noisy": odd("noise", name="noisy.starts"),
                "silent-end": {"command": "/bin/true"}}

    def test_one_process_however_many_runs(self):
        replies = [self.start("print(*await __import__('asyncio').gather(*[mcp_shared.pid() for _ in range(5)]))",
                              ["shared"], timeout=100) for _ in range(8)]
        pids = {pid for reply in replies for pid in self.answer(reply)["stdout"].split()}
        self.assertEqual(len(pids), 1)
        self.assertEqual(self.lines_of("shared.starts"), list(pids))

    def test_nothing_starts_that_nobody_asked_for(self):
        self.run_well("from mcp import runtime; runtime.search_tool_docs_sync('pid'); runtime.discovered_servers()",
                      ["noisy"])
        self.assertEqual(self.lines_of("unused.starts"), [])

    def test_a_slow_start_outlives_the_run_that_wanted_it(self):
        """Its progress isn't thrown away with the first impatient run."""
        answer = self.run_code("print(await mcp_cold.pid())", ["cold"], timeout=1)
        self.assertTrue(answer["status"] == "timeout" or "still starting" in answer["error"]["message"], answer)
        answer = self.run_well("print(await mcp_cold.pid())", ["cold"], timeout=60)
        self.assertEqual(self.lines_of("cold.starts"), [answer["stdout"].strip()])

    def test_a_run_from_a_file_waits_for_a_slow_start(self):
        """Nothing would be left of it for another attempt."""
        done = self.world.command("run", "-", "--timeout", "6", "--server", "cold-file",
                                  input=b"print(await mcp_cold_file.pid())")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.lines_of("cold-file.starts"), [done.stdout.decode().strip()])

    def test_a_start_has_an_end(self):
        code, message = self.failure("mcp_servers['too-slow'].pid()", ["too-slow"])
        self.assertEqual(code, "server_failed", message)
        self.assertIn("startTimeout", message)

    def test_a_command_that_is_not_there(self):
        code, message = self.failure("mcp_missing.anything()", ["missing"])
        self.assertEqual(code, "server_failed", message)
        self.assertIn("/nonexistent/mcp-server", message)

    def test_a_server_that_ends_at_once_says_why(self):
        code, message = self.failure("mcp_broken.pid()", ["broken"])
        self.assertEqual(code, "server_failed", message)
        self.assertIn("no licence found", message)
        code, message = self.failure("mcp_servers['silent-end'].pid()", ["silent-end"])
        self.assertEqual(code, "server_failed", message)

    def test_a_server_that_fails_always_is_left_alone(self):
        """Not a process for every call: it backs off."""
        self.run_well("""
            from mcp.runtime import MCPError
            for _ in range(30):
                try: await mcp_broken.pid()
                except MCPError as e: print(e.code)
            """, ["broken"], timeout=100)
        self.assertLess(len(self.lines_of("broken.starts")), 13)

    def test_a_server_that_speaks_something_else(self):
        code, message = self.failure("mcp_garbage.pid()", ["garbage"])
        self.assertEqual(code, "server_failed", message)

    def test_noise_on_stdout_is_skipped(self):
        answer = self.run_well("for _ in range(5): print(await mcp_noisy.echo(message='clear'))", ["noisy"])
        self.assertEqual(answer["stdout"], "clear\n" * 5)

    def test_bad_ones_do_not_disturb_good_ones(self):
        answer = self.run_well("""
            import asyncio
            results = await asyncio.gather(mcp_missing.x(), mcp_broken.pid(), mcp_garbage.pid(),
                                           mcp_noisy.echo(message="fine"), return_exceptions=True)
            print([type(r).__name__ for r in results[:3]], results[3])
            """, ["missing", "broken", "garbage", "noisy"], timeout=100)
        self.assertEqual(answer["stdout"], "['MCPError', 'MCPError', 'MCPError'] fine\n")


class Calling(UpstreamTest):
    @staticmethod
    def servers(world):
        record = {name: world.path("odd." + name.lower()) for name in ("STARTS", "CALLS", "CANCELS")}
        return {"odd": world.odd_server(env={**record, "SECRET": SECRET}),
                "closing": world.odd_server(),
                "impatient": world.odd_server(callTimeout=1),
                "names": world.odd_server("odd-names"),
                "pages": world.odd_server("pages=10", "many-tools=35"),
                "circle": world.odd_server("pages=5", "repeat-cursor"),
                "descending": world.odd_server("descendants")}

    def test_large_results(self):
        for size in (70_000, 10_000_000):
            with self.subTest(size):
                answer = self.run_well(f"t = await mcp_odd.blob(size={size}); print(len(t), set(t))", ["odd"])
                self.assertEqual(answer["stdout"], f"{size} {{'x'}}\n")

    def test_a_result_that_is_too_large(self):
        code, message = self.failure("mcp_odd.blob(size=20_000_000)", ["odd"])
        self.assertEqual(code, "too_large", message)
        answer = self.run_well("print(await mcp_odd.echo(message='goes on'))", ["odd"])
        self.assertEqual(answer["stdout"], "goes on\n")

    def test_large_arguments(self):
        answer = self.run_well("print(len(await mcp_odd.echo(message='m' * 5_000_000)))", ["odd"])
        self.assertEqual(answer["stdout"], "5000000\n")
        code, message = self.failure("mcp_odd.echo(message='m' * 17_000_000)", ["odd"])
        self.assertEqual(code, "too_large", message)

    def test_kinds_of_results(self):
        answer = self.run_well("""
            print(await mcp_odd.structured(a=[1, {"b": None}]))
            print(await mcp_odd.image())
            print((await __import__("mcp").runtime.call_tool("odd", "fail", raw=True))["isError"])
            """, ["odd"])
        self.assertEqual(answer["stdout"].splitlines(), [
            "{'a': [1, {'b': None}]}",
            "[{'type': 'text', 'text': 'a picture'}, "
            "{'type': 'image', 'data': 'iVBORw0KGgo=', 'mimeType': 'image/png'}]",
            "True"])

    def test_death_in_the_middle_of_a_call(self):
        """Told at once, started again for the next call, and never asked twice."""
        before = self.lines_of("odd.calls").count("die")
        begun = time.monotonic()
        code, message = self.failure("mcp_odd.die(code=7)", ["odd"])
        self.assertEqual(code, "server_failed", message)
        self.assertLess(time.monotonic() - begun, patience(10))
        self.assertIn("7", message)
        self.assertIn("dying now", message)
        self.assertNotIn(SECRET, message)
        answer = self.run_well("print(await mcp_odd.echo(message='again'), len(dir(mcp_odd)) > 10)", ["odd"])
        self.assertEqual(answer["stdout"], "again True\n")
        self.assertEqual(self.lines_of("odd.calls").count("die") - before, 1)

    def test_other_calls_of_a_dying_server_fail_too(self):
        answer = self.run_well("""
            import asyncio
            await mcp_odd.echo(message="warm")
            print([getattr(r, "code", r) for r in await asyncio.gather(
                mcp_odd.hang(), mcp_odd.wait(seconds=30), asyncio.sleep(0.5, "slept"),
                mcp_odd.die(), return_exceptions=True)])
            """, ["odd"])
        self.assertEqual(answer["stdout"], "['server_failed', 'server_failed', 'slept', 'server_failed']\n")

    def test_a_call_that_takes_too_long(self):
        code, message = self.failure("mcp_impatient.hang()", ["impatient"])
        self.assertEqual(code, "timeout", message)
        answer = self.run_well("print(await mcp_impatient.echo(message='serves on'))", ["impatient"])
        self.assertEqual(answer["stdout"], "serves on\n")

    def test_a_cancelled_run_cancels_its_calls_alone(self):
        # Whatever earlier runs cancelled arrives before this call.
        self.run_well("await mcp_odd.echo(message='warm')", ["odd"])
        cancels = len(self.lines_of("odd.cancels"))
        calls = self.lines_of("odd.calls").count("hang")
        starts = self.lines_of("odd.starts")
        victim = self.start("await mcp_odd.hang()", ["odd"])
        wait_until(lambda: self.lines_of("odd.calls").count("hang") > calls, 30, "the call arrived")
        other = self.start("print(await mcp_odd.wait(seconds=2))", ["odd"])
        wait_until(lambda: "wait" in self.lines_of("odd.calls"), 30, "the other call arrived")
        self.client.cancel(victim)
        wait_until(lambda: len(self.lines_of("odd.cancels")) == cancels + 1, 10, "the server is told")
        self.assertEqual(self.answer(other)["stdout"], "waited\n")
        self.assertEqual(self.lines_of("odd.starts"), starts, "the server isn't started again")

    def test_a_server_that_closes_its_stdout_and_lives(self):
        """It counts as dead: whoever waits is told at once, it is ended, and the next call starts another."""
        answer = self.run_well("""
            import asyncio, time
            from mcp.runtime import MCPError
            old = await mcp_closing.pid()
            begun = time.monotonic()
            failed = await asyncio.gather(mcp_closing.hang(), mcp_closing.close_stdout(), return_exceptions=True)
            for e in failed: print(e.code, "closing" in e.message, "closed its stdout" in e.message)
            new = await mcp_closing.pid()
            print(old, new, time.monotonic() - begun < 60)
            """, ["closing"], timeout=100)
        *failures, last = answer["stdout"].splitlines()
        self.assertEqual(failures, ["server_failed True True"] * 2)
        old, new, in_time = last.split()
        self.assertNotEqual(old, new)
        self.assertEqual(in_time, "True")
        self.assertFalse(is_alive(int(old)))
        self.assertTrue(is_alive(int(new)))

    def test_a_cancelled_await_goes_on(self):
        """Its call is cancelled at the server, and no other."""
        self.run_well("await mcp_odd.echo(message='warm')", ["odd"])
        cancels = len(self.lines_of("odd.cancels"))
        answer = self.run_well("""
            import asyncio
            other = asyncio.create_task(mcp_odd.wait(seconds=2))
            given_up = asyncio.create_task(mcp_odd.hang())
            await asyncio.sleep(0)
            # Sent after it, so that it has been sent by then.
            await mcp_odd.echo(message="")
            given_up.cancel()
            try:
                await given_up
            except asyncio.CancelledError:
                print("gave up", await mcp_odd.echo(message="and went on"), await other)
            """, ["odd"])
        self.assertEqual(answer["stdout"], "gave up and went on waited\n")
        wait_until(lambda: len(self.lines_of("odd.cancels")) > cancels, 10, "the server is told")
        self.assertEqual(len(self.lines_of("odd.cancels")), cancels + 1)

    def test_a_time_limit_of_the_codes_own_cancels_the_call(self):
        self.run_well("await mcp_odd.echo(message='warm')", ["odd"])
        cancels = len(self.lines_of("odd.cancels"))
        answer = self.run_well("""
            import asyncio
            try:
                await asyncio.wait_for(mcp_odd.hang(), 3)
            except (asyncio.TimeoutError, TimeoutError):
                print("gave up")
            await mcp_odd.echo(message="")
            """, ["odd"])
        self.assertEqual(answer["stdout"], "gave up\n")
        wait_until(lambda: len(self.lines_of("odd.cancels")) > cancels, 10, "the server is told")

    def test_all_pages_are_read(self):
        answer = self.run_well("""
            print(len(dir(mcp_pages)), await mcp_pages.tool_0034())
            print(len(await __import__("mcp").runtime.list_tools("pages")))
            """, ["pages"])
        count = int(answer["stdout"].split()[0])
        self.assertEqual(answer["stdout"], f"{count} number 34\n{count}\n")
        self.assertGreaterEqual(count, 35 + 12)

    def test_a_cursor_that_repeats_ends_the_list(self):
        answer = self.run_well("print(len(dir(mcp_circle)))", ["circle"])
        self.assertEqual(answer["stdout"], "5\n")

    def test_odd_names(self):
        """Every tool can be called by an identifier and by its raw name, whatever it is called."""
        answer = self.run_well("""
            import json, keyword
            tools = {t["name"]: t["alias"] for t in await __import__("mcp").runtime.list_tools("names")}
            for raw, alias in tools.items():
                assert alias.isidentifier() and not keyword.iskeyword(alias), alias
            assert len(set(tools.values())) == len(tools)
            odd = ["read-file", "read_file", "read.file", "grüße", "日本語", "class", "1st", "a/b c",
                   "__init__", "*"]
            for raw in odd:
                assert await getattr(mcp_names, tools[raw])() == "called " + raw, raw
                assert await mcp_servers["names"][raw]() == "called " + raw, raw
            print("all", len(odd))
            """, ["names"])
        self.assertEqual(answer["stdout"], "all 10\n")

    def test_secrets_stay_on_the_host(self):
        answer = self.run_well("""
            import json
            print("here", json.loads(await mcp_odd.environment())["SECRET"][:3])
            from mcp import runtime
            seen = [runtime.describe_server("odd"), runtime.discovered_servers(True), runtime.capability_summary(),
                    await runtime.list_servers(), await runtime.query_tool_docs("odd", detail="full")]
            for path in ("/proc/self/environ", "/proc/1/environ", "/proc/self/cmdline", "/proc/1/cmdline"):
                seen.append(open(path, "rb").read().decode(errors="replace"))
            import gc
            seen += [repr(o)[:100_000] for o in gc.get_objects() if isinstance(o, (dict, list, tuple))]
            word = "-".join(["0123456789", "kept"])
            print(any(word in str(s) for s in seen))
            """, ["odd"])
        self.assertEqual(answer["stdout"], "here s3c\nFalse\n")
        self.assertNotIn(SECRET, self.world.log_of(self.client))
        arguments = [" ".join(command_line(pid)) for pid in every_process()]
        self.assertFalse([line for line in arguments if SECRET in line])

    def test_servers_get_a_minimal_environment(self):
        answer = self.run_well("print(await mcp_odd.environment())", ["odd"])
        environment = json.loads(answer["stdout"])
        self.assertEqual(environment["SECRET"], SECRET)
        self.assertEqual([name for name in environment if name.startswith(("MCP_", "PYTHON"))], [])
        self.assertIn("BULKHEAD_DEPTH", environment)

    def test_descendants_end_with_the_server(self):
        with_descendants = self.world.client(MCP_BRIDGE_POOL="0")
        answer = self.run_well("print(await mcp_descending.descend(), await mcp_descending.pid())", ["descending"],
                               client=with_descendants)
        descendant, server = map(int, answer["stdout"].split())
        self.assertTrue(is_alive(descendant))
        wait_until(lambda: len(processes_of(with_descendants.instance)) == 3, 10, "the server and two descendants")
        self.assertEqual(with_descendants.close(patience(10)), 0)
        self.world.assert_clean(with_descendants.instance, alive=False)
        self.assertFalse(is_alive(descendant) or is_alive(server))

    def test_no_zombies(self):
        self.run_well("for _ in range(3): await mcp_descending.descend()", ["descending"])
        self.failure("mcp_descending.die()", ["descending"])
        wait_until(lambda: not zombies_of(self.client.pid), 5, "no zombies")


class Configuration(unittest.TestCase):
    def setUp(self):
        self.world = World({})

    def tearDown(self):
        self.world.close()

    def shown(self, *arguments, status=0, **variables):
        done = self.world.command("servers", "--json", *arguments, **variables)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_variables_are_expanded(self):
        self.world.write_config("servers.json", {"mcpServers": {"odd": {
            "command": "${TEST_PYTHON}", "args": [self.world.path("odd_server.py"), "${TEST_ARGUMENT:-by default}",
                                                  "$HOME", "x${TEST_EMPTY}y"],
            "env": {"SECRET": "${TEST_SECRET}"}, "cwd": "${TEST_FOLDER}"}}})
        client = self.world.client(TEST_PYTHON=PYTHON, TEST_SECRET=SECRET, TEST_FOLDER=self.world.folder,
                                   TEST_EMPTY="")
        answer = client.run("print(await mcp_odd.arguments()); print(await mcp_odd.environment())", ["odd"],
                            wait=patience(90))
        self.assertEqual(answer["status"], "success", answer)
        arguments, environment = map(json.loads, answer["stdout"].splitlines())
        self.assertEqual(arguments, {"argv": ["by default", "$HOME", "xy"], "cwd": self.world.folder})
        self.assertEqual(environment["SECRET"], SECRET)
        self.assertNotIn(SECRET, self.world.log_of(client))

    def test_a_variable_that_is_not_set(self):
        self.world.write_config("servers.json", {"mcpServers": {
            "bad": {"command": PYTHON, "env": {"TOKEN": "${TEST_NOT_SET}"}}, "good": {"command": PYTHON}}})
        shown = self.shown(status=1)
        self.assertEqual([server["name"] for server in shown["servers"]], ["good"])
        self.assertEqual([(p["entry"], "TEST_NOT_SET" in p["message"]) for p in shown["problems"]], [("bad", True)])

    def test_one_bad_file_or_entry_does_not_hide_the_others(self):
        self.world.write_config("a.json", "{ this is no JSON")
        self.world.write_config("b.json", """{"mcpServers": {
            "commented": {"command": "x", /* y */ "args": ["1",],}, // z
            "wrong": {"command": 5}, "no-command": {}}}""")
        self.world.write_config("c.json", "[]")
        os.mkdir(os.path.join(self.world.state, "folder.json"))
        shown = self.shown(status=1)
        # It is found, and denied: any of the bad files may have meant to.
        self.assertEqual([(server["name"], server["allowed"]) for server in shown["servers"]], [("commented", False)])
        files = {os.path.basename(problem["file"]) for problem in shown["problems"]}
        self.assertEqual(files, {"a.json", "b.json", "c.json", "folder.json"})
        entries = {problem["entry"] for problem in shown["problems"]}
        self.assertLessEqual({"wrong", "no-command"}, entries)
        client = self.world.client()
        answer = client.run("print(__import__('mcp').runtime.discovered_servers())", wait=patience(90))
        self.assertEqual(answer["stdout"], "[]\n")
        for name in ("a.json", "c.json"):
            os.unlink(os.path.join(self.world.state, name))
        os.rmdir(os.path.join(self.world.state, "folder.json"))
        self.assertEqual([(server["name"], server["allowed"]) for server in self.shown(status=1)["servers"]],
                         [("commented", True)])

    def test_it_does_not_start_itself(self):
        self.world.write_config("servers.json", {"mcpServers": {
            "me": {"command": BINARY}, "indirectly": {"command": "env", "args": [BINARY]}}})
        shown = self.shown(status=1)
        self.assertEqual(shown["servers"], [])
        self.assertEqual({problem["entry"] for problem in shown["problems"]}, {"me", "indirectly"})

    def test_a_further_file(self):
        self.world.write_config("servers.json", {"mcpServers": {"first": {"command": "x"}}})
        path = self.world.path("further.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"second": {"command": "y"}}}, file)
        shown = self.shown(MCP_SERVERS_CONFIG=path)
        self.assertEqual({server["name"]: server["source"] for server in shown["servers"]},
                         {"first": os.path.join(self.world.state, "servers.json"), "second": path})

    def test_a_policy_that_can_not_be_read_allows_nothing(self):
        self.world.write_config("servers.json", {"mcpServers": {"first": {"command": "x"}}})
        self.world.write_config("policy.json", '{"policy": {"deny": "first"}}')
        shown = self.shown(status=1)
        self.assertEqual([server["allowed"] for server in shown["servers"]], [False])


if __name__ == "__main__":
    unittest.main()
