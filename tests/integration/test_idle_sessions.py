"""What a session's code leaves working doesn't work between its runs."""

import textwrap
import time

from host import patience, read
from instances import guests_of
from stdio_client import children_of
from world import BulkheadTest, constraint_rows

SPINNER = """
    import threading, time
    turns = 0
    def spin():
        global turns
        while True:
            turns += 1
    threading.Thread(target=spin, daemon=True).start()
"""


def ticks_of(pids):
    """The CPU time of processes with all their threads, user and system, in clock ticks; see proc(5)."""
    return sum(sum(map(int, read(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13])) for pid in pids)


class Spinning:
    """What holds however sandboxes are started."""

    WINDOW = 3  # seconds: what is compared are shares of it

    def setUp(self):
        super().setUp()
        row = constraint_rows(self.world)["idle sessions"]
        self.assertTrue(row["held"], row)

    def in_session(self, session, code, client=None):
        answer = self.answer((client or self.client).start_run(textwrap.dedent(code), session=session), 90)
        self.assert_success(answer)
        return answer

    def guests(self):
        """The processes of all sandboxes."""
        pids = guests_of(self.client.instance)
        self.assertTrue(pids)
        return [each for pid in pids for each in [pid, *children_of(pid)]]

    def used_in_a_run(self, session):
        before = ticks_of(self.guests())
        self.in_session(session, f"time.sleep({self.WINDOW})")
        return ticks_of(self.guests()) - before

    def used_between_runs(self):
        before = ticks_of(self.guests())
        time.sleep(self.WINDOW)
        return ticks_of(self.guests()) - before

    def test_a_thread_that_spins_works_while_code_runs_and_not_between_runs(self):
        session = self.in_session("new", SPINNER)["session"]
        for _ in range(2):
            idle = self.used_between_runs()
            busy = self.used_in_a_run(session)
            self.assertLess(10 * idle, busy, "clock ticks between runs, and within one")


class IdleSessions(Spinning, BulkheadTest):
    def test_what_the_session_holds_is_kept_and_its_threads_go_on(self):
        session = self.in_session("new", SPINNER + "    kept = 41\n")["session"]
        self.used_between_runs()
        answer = self.in_session(session, """
            before = turns
            while turns == before: time.sleep(0.01)
            kept + 1
        """)
        self.assertEqual(answer["result"], 42)

    def test_child_processes_stop_too(self):
        session = self.in_session("new", """
            import subprocess, sys, time
            child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        """)["session"]
        idle = self.used_between_runs()
        busy = self.used_in_a_run(session)
        self.assertLess(10 * idle, busy, "clock ticks between runs, and within one")
        self.assertEqual(self.in_session(session, "child.kill(); child.wait()")["result"], -9)

    def test_a_session_that_spins_ends_with_its_server_and_leaves_nothing(self):
        client = self.world.client()
        self.in_session("new", SPINNER, client)
        self.assertEqual(client.close(patience(20)), 0)
        self.world.assert_clean(client.instance, alive=False)


class ByPodmansService(Spinning, BulkheadTest):
    variables = {"MCP_BRIDGE_DRIVER": "rest"}


class ByTheOciRuntime(Spinning, BulkheadTest):
    variables = {"MCP_BRIDGE_RUNTIME": "oci"}
