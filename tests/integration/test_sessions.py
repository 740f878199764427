"""Sessions: an interpreter that is kept between calls."""

import textwrap
import time

from host import as_account, patience, wait_until
from instances import containers_of, guests_of
from world import POOLED, BulkheadTest

LOST = "there is no such session"


class SessionTest(BulkheadTest):
    def start_in(self, session, code, client=None, **more):
        return (client or self.client).start_run(textwrap.dedent(code), session=session, **more)

    def run_in(self, session, code, client=None, wait=90, **more):
        return self.answer(self.start_in(session, code, client, **more), wait)

    def well_in(self, session, code, client=None, **more):
        answer = self.run_in(session, code, client, **more)
        self.assert_success(answer)
        self.assertEqual(answer["session"], answer["session"] if session == "new" else session)
        return answer

    def open_session(self, code="pass", client=None, **more):
        return self.well_in("new", code, client, **more)["session"]

    def assert_lost(self, handle, client=None):
        answer = self.run_in(handle, "print('ran')", client)
        self.assertEqual(answer["status"], "session_lost", answer)
        self.assertIn(LOST, answer["error"]["message"])
        self.assertNotIn("stdout", answer)
        self.assertNotIn("session", answer)
        return answer


class StateIsKept(SessionTest):
    servers = staticmethod(lambda world: {"rec": world.recorder("calls"), "late": world.recorder("late"),
                                      "other": world.recorder("others")})

    def test_variables_imports_functions_and_open_files_are_kept(self):
        handle = self.open_session("""
            import math
            kept = {"n": 1}
            def double(x): return 2 * x
            log = open("/workspace/log", "w+")
            log.write("first\\n")
        """)
        self.assertRegex(handle, "^[0-9a-f]{32}$")
        self.well_in(handle, "kept['n'] = double(math.floor(kept['n'] + 0.5)); log.write('second\\n')")
        answer = self.well_in(handle, "log.seek(0); print(kept, repr(log.read())); kept['n']")
        self.assertEqual(answer["stdout"], "{'n': 2} 'first\\nsecond\\n'\n")
        self.assertEqual(answer["result"], 2)

    def test_a_hundred_calls_count_in_one_interpreter(self):
        handle = self.open_session("seen = []; import os; pid = os.getpid()")
        for number in range(100):
            self.well_in(handle, f"seen.append({number}); assert os.getpid() == pid")
        self.assertEqual(self.well_in(handle, "print(seen == list(range(100)))")["stdout"], "True\n")

    def test_an_error_and_an_exit_code_leave_the_session_as_it_is(self):
        handle = self.open_session("kept = 'here'")
        answer = self.run_in(handle, "1/0")
        self.assertEqual((answer["status"], answer["error"]["type"]), ("error", "ZeroDivisionError"))
        self.assertEqual(answer["session"], handle)
        answer = self.run_in(handle, "import sys; sys.exit(3)")
        self.assertEqual((answer["status"], answer["exitCode"], answer["session"]), ("error", 3, handle))
        self.assertEqual(self.well_in(handle, "print(kept)")["stdout"], "here\n")

    def test_eight_sessions_at_once_do_not_mix(self):
        handles = [self.open_session(f"mine = {number}") for number in range(8)]
        self.assertEqual(len(set(handles)), 8)
        for _ in range(3):
            replies = [self.start_in(handle, "import time; time.sleep(0.2); mine += 10; print(mine)")
                       for handle in handles]
            outputs = [int(self.answer(reply)["stdout"]) for reply in replies]
        self.assertEqual(outputs, [30 + number for number in range(8)])

    def test_runs_of_a_session_are_serial_and_in_order(self):
        handle = self.open_session("order = []")
        replies = [self.start_in(handle, f"""
            import time
            order.append(("in", {number})); time.sleep(0.1); order.append(("out", {number}))
        """) for number in range(5)]
        for reply in replies:
            self.assert_success(self.answer(reply))
        answer = self.well_in(handle, "order")
        self.assertEqual(answer["result"],
                         [[step, number] for number in range(5) for step in ("in", "out")])

    def test_reset_starts_afresh_under_the_same_handle(self):
        handle = self.open_session("kept = 1; open('/workspace/f', 'w').close()")
        answer = self.well_in(handle, "import os; print('kept' in globals(), os.listdir('/workspace'))", reset=True)
        self.assertEqual(answer["stdout"], "False []\n")

    def test_tools_are_called_in_each_run_and_rights_stay_as_they_were_made(self):
        handle = self.open_session("await mcp_rec.echo(text='one')", servers=["rec"])
        self.well_in(handle, "await mcp_rec.echo(text='two')")
        self.well_in(handle, "await mcp_rec.echo(text='three')", servers=["rec"])
        answer = self.run_in(handle, "print('ran')", servers=["other"])
        self.assertEqual(answer["status"], "validation_error", answer)
        self.assertIn("this one has: rec", answer["error"]["message"])
        answer = self.run_in(handle, """
            from mcp import runtime
            try:
                await runtime.call_tool("other", "echo", {"text": "no"})
            except runtime.MCPError as refused:
                print(refused.code)
        """)
        self.assertEqual(answer["stdout"].strip(), "denied", answer)
        self.assertEqual([call["arguments"]["text"] for call in self.world.recorded("calls")],
                         ["one", "two", "three"])

    def test_between_runs_it_can_call_no_tool(self):
        """A thread that outlives its run calls in vain until the session runs code again."""
        handle = self.open_session("""
            import threading, time
            from mcp import runtime
            outcomes = []
            def caller():
                while True:
                    try:
                        runtime.call_tool_sync("late", "echo", {"text": "thread"})
                        outcomes.append("called")
                    except Exception as failure:
                        outcomes.append(getattr(failure, "code", repr(failure)))
                    time.sleep(0.05)
            threading.Thread(target=caller, daemon=True).start()
        """, servers=["late"])
        before = len(self.world.recorded("late"))
        time.sleep(patience(2))
        self.assertEqual(len(self.world.recorded("late")), before)
        # It is the same session's code, so that it may call again while a run goes on.
        answer = self.well_in(handle, """
            import time
            before = outcomes.copy()
            time.sleep(1)
            set(before[-5:]) == {"closed"}, outcomes[-1]
        """)
        self.assertEqual(answer["result"], [True, "called"])

    def test_output_between_runs_is_dropped_and_does_not_block_the_next(self):
        handle = self.open_session("""
            import os, threading, time
            def shout():
                while True:
                    os.write(1, b"x" * 65536)
            threading.Thread(target=shout, daemon=True).start()
        """)
        time.sleep(patience(1))
        answer = self.run_in(handle, "6 * 7")
        self.assertEqual((answer["status"], answer["session"], answer["result"]), ("success", handle, 42))


class TheEnd(SessionTest):
    def test_a_timeout_interrupts_and_the_state_survives(self):
        handle = self.open_session("kept = 'state'")
        for sleeper in ("import time; time.sleep(60)", "while True: pass", "import asyncio; await asyncio.sleep(60)"):
            answer = self.run_in(handle, f"kept += '!'\n{sleeper}", timeout=1)
            self.assertEqual((answer["status"], answer["session"]), ("timeout", handle), answer)
            self.assertIn("interrupted, and the session goes on", answer["error"]["message"])
        self.assertEqual(self.well_in(handle, "print(kept)")["stdout"], "state!!!\n")

    def test_code_that_ignores_the_interrupt_is_killed_and_the_answer_says_lost(self):
        handle = self.open_session("kept = 1")
        answer = self.run_in(handle, """
            import time
            while True:
                try:
                    time.sleep(60)
                except KeyboardInterrupt:
                    print("not me", flush=True)
        """, timeout=1)
        self.assertEqual(answer["status"], "timeout", answer)
        self.assertIn("was killed; the session and what it held are lost", answer["error"]["message"])
        self.assertNotIn("session", answer)
        self.assertIn("not me", answer["stdout"])
        self.assert_lost(handle)

    def test_a_cancelled_run_leaves_the_session_usable(self):
        handle = self.open_session("kept = 7")
        reply = self.start_in(handle, "import time; time.sleep(60)")
        time.sleep(patience(0.5))
        self.client.cancel(reply)
        self.assertEqual(self.well_in(handle, "print(kept)")["stdout"], "7\n")

    def test_a_process_that_ends_itself_takes_the_session_along(self):
        for status in (0, 5):
            handle = self.open_session()
            answer = self.run_in(handle, f"print('bye'); import os; os._exit({status})")
            self.assertEqual((answer["status"], answer["exitCode"], answer["stdout"]), ("error", status, "bye\n"), answer)
            self.assertIn("session and what it held are lost", answer["error"]["message"])
            self.assert_lost(handle)

    def test_a_container_killed_between_runs_is_a_lost_session(self):
        handle = self.open_session("kept = 1")
        names = containers_of(self.client.instance)
        for name in names:
            as_account("podman", "kill", name.split()[0])
        wait_until(lambda: not containers_of(self.client.instance), 30, "the container is gone")
        wait_until(lambda: self.run_in(handle, "pass")["status"] == "session_lost", 30, "the session is lost")
        self.assert_lost(handle)

    def test_guessed_ended_and_malformed_handles_are_answered_alike(self):
        handle = self.open_session()
        self.run_in(handle, "import os; os._exit(1)")
        answers = [self.assert_lost(guess)
                   for guess in (handle, "0" * 32, "f" * 31, "../../etc", "new2", "é" * 40)]
        for answer in answers:
            answer.pop("durationMs", None)
            self.assertEqual(answer, answers[0])

    def test_arguments_are_checked(self):
        for arguments, word in (({"session": 7}, "session must be"), ({"session": ""}, "session is empty"),
                                ({"reset": True}, "reset needs a session"),
                                ({"session": "new", "reset": "yes"}, "reset must be true or false")):
            reply = self.client.start_run("print(1)", **arguments)
            answer = self.answer(reply)
            self.assertEqual(answer["status"], "validation_error", answer)
            self.assertIn(word, answer["error"]["message"])


class FewAndShort(SessionTest):
    variables = {"MCP_BRIDGE_SESSIONS": "2", "MCP_BRIDGE_SESSION_IDLE": "6"}

    def test_the_one_unused_for_longest_makes_room(self):
        first, second = self.open_session("a = 1"), self.open_session("b = 2")
        self.well_in(first, "a")
        third = self.open_session("c = 3")
        self.assert_lost(second)
        self.assertEqual(self.well_in(first, "a")["result"], 1)
        self.assertEqual(self.well_in(third, "c")["result"], 3)

    def test_running_sessions_do_not_make_room(self):
        replies = [self.start_in("new", "import time; time.sleep(100)") for _ in range(2)]
        time.sleep(patience(0.5))
        answer = self.run_in("new", "pass")
        self.assertEqual(answer["status"], "unavailable", answer)
        self.assertIn("MCP_BRIDGE_SESSIONS", answer["error"]["message"])
        for reply in replies:
            self.client.cancel(reply)
        wait_until(lambda: self.run_in("new", "pass")["status"] == "success", 30, "there is room again")

    def test_an_idle_session_ends_and_leaves_nothing(self):
        handle = self.open_session()
        self.assertEqual(len(guests_of(self.client.instance)) >= 1, True)
        wait_until(lambda: not guests_of(self.client.instance), 60, "the idle session ends")
        self.assert_lost(handle)
        self.assert_nothing_left()


class RunsThatNeverBegin(SessionTest):
    """A run that is cancelled while it waits for its turn costs no session what it holds."""

    variables = {"MCP_BRIDGE_SESSIONS": "1", "MCP_BRIDGE_CONCURRENT_RUNS": "1"}

    def test_neither_a_reset_nor_a_new_session(self):
        handle = self.open_session("kept = 1")
        for session, more in ((handle, {"reset": True}), ("new", {})):
            busy = self.start("import time; time.sleep(100)")
            time.sleep(patience(0.5))
            waiting = self.start_in(session, "pass", **more)
            time.sleep(patience(0.3))
            self.client.cancel(waiting)
            self.client.cancel(busy)
            self.assertEqual(self.well_in(handle, "kept")["result"], 1)


class ARunAsTheSessionEnds(SessionTest):
    """A run that comes at the moment of the idle end gets the state or is told that it is gone."""

    variables = {"MCP_BRIDGE_SESSION_IDLE": "2"}

    def test_the_state_or_session_lost(self):
        seen = set()
        for milliseconds in (1500, 1900, 1960, 1990, 2000, 2010, 2040, 2100, 2500):
            handle = self.open_session("kept = 'state'")
            time.sleep(milliseconds / 1000)
            answer = self.run_in(handle, "print(kept)")
            seen.add(answer["status"])
            if answer["status"] == "success":
                self.assertEqual(answer["stdout"], "state\n")
            else:
                self.assertEqual(answer["status"], "session_lost", answer)
                self.assertIn(LOST, answer["error"]["message"])
        self.assertEqual(seen, {"success", "session_lost"})

    def test_a_run_that_is_longer_than_the_idle_time_is_not_cut_short(self):
        handle = self.open_session("kept = 1")
        self.well_in(handle, "import time; time.sleep(4); kept += 1")
        self.assertEqual(self.well_in(handle, "kept")["result"], 2)


class BothErasAndThePool(SessionTest):
    variables = {**POOLED, "MCP_BRIDGE_POOL": "1"}

    def test_a_session_goes_on_after_its_client_says_hello_again(self):
        handle = self.open_session("kept = 1")
        self.client.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                           "clientInfo": {"name": "again", "version": "1"}}).result(30)
        self.assertEqual(self.well_in(handle, "kept")["result"], 1)

    def test_the_modern_era_uses_the_same_handle(self):
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}}
        handle = self.open_session("kept = 5")
        answer = self.answer(self.client.start_run("print(kept)", session=handle, meta=meta))
        self.assertEqual((answer["stdout"], answer["session"]), ("5\n", handle))

    def test_the_text_that_a_model_reads_has_the_handle(self):
        result = self.client.start_run("print('x')", session="new").result(patience(60))
        self.assertEqual(result["content"][0]["text"],
                         f"x\n[session: {result['structuredContent']['session']}]")
