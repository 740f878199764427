"""Life and death of runs and servers: whatever is killed, at whatever moment, everybody who waits gets an answer
and nothing is left."""

import signal
import subprocess
import time
import unittest

from host import as_account, patience, wait_until
from instances import (containers_of, guests_of, is_alive, monitors_of, orphaned_storage, processes_of,
                       remove_container)
from lifecycle import SLEEPER, LifecycleTest, kill
from stdio_client import children_of
from world import World


class Cancelling(LifecycleTest):
    variables = {"MCP_BRIDGE_CONCURRENT_RUNS": "2"}

    def test_while_it_runs(self):
        reply = self.start(SLEEPER)
        self.wait_for_guest()
        self.client.cancel(reply)
        self.assert_nothing_left()
        self.assert_no_answer(reply)
        self.assert_still_serves()

    def test_at_every_moment_of_the_boot(self):
        for milliseconds in (0, 5, 20, 50, 80, 110, 140, 170, 220, 300):
            with self.subTest(milliseconds):
                reply = self.start(SLEEPER)
                time.sleep(milliseconds / 1000)
                self.client.cancel(reply)
                self.assert_nothing_left()
                self.assert_no_answer(reply, 0)
        self.assert_still_serves()

    def test_while_it_waits_for_its_turn(self):
        running = [self.start(SLEEPER) for _ in range(2)]
        wait_until(lambda: len(guests_of(self.client.instance)) == 2, 30, "two guests run")
        waiting = [self.start("print('never')") for _ in range(3)]
        last = self.start("print('its turn came')")
        for reply in waiting:
            self.client.cancel(reply)
        self.client.cancel(running[0])
        self.assertEqual(self.answer(last)["stdout"], "its turn came\n")
        self.client.cancel(running[1])
        self.assert_nothing_left()
        for reply in waiting + running:
            self.assert_no_answer(reply, 0)

    def test_more_than_the_queue_holds(self):
        replies = [self.start(SLEEPER) for _ in range(70)]
        refused = wait_until(lambda: [r for r in replies if r.done], 20, "some are refused")
        answer = self.answer(refused[0])
        self.assertEqual((answer["status"], answer["error"]["code"]), ("unavailable", "overloaded"))
        for reply in reversed(replies):
            self.client.cancel(reply)
        self.assert_nothing_left()
        self.assert_still_serves()

    def test_what_was_never_asked_for(self):
        self.client.notify("notifications/cancelled", {"requestId": 999_999})
        self.client.notify("notifications/cancelled", {"requestId": {"a": 1}})
        self.client.notify("notifications/cancelled", {})
        self.assert_still_serves()


class Timeouts(LifecycleTest):
    def test_everything_is_gone_at_once(self):
        for code in ("while True: pass", "import time; time.sleep(600)",
                     "import subprocess; subprocess.run(['sh', '-c', 'sleep 600 & sleep 600'])"):
            with self.subTest(code):
                answer = self.run_code(code, timeout=1)
                self.assertEqual(answer["status"], "timeout")
                self.assert_nothing_left()
        self.assert_still_serves()


class Killing(LifecycleTest):
    """Parts of a container are killed behind the server's back."""

    def assert_lost(self, reply):
        answer = self.answer(reply)
        self.assertIn(answer["status"], ("error", "unavailable"), answer)
        self.assertIn(answer["error"]["code"], ("runtime_lost", "unavailable"), answer)
        self.assertTrue(answer["error"]["message"])
        self.assert_nothing_left()

    def test_the_engines_command_while_it_runs(self):
        reply, engine = self.start_and_find(SLEEPER)
        self.wait_for_guest()
        kill(self.now(engine))
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_the_engines_command_while_it_boots(self):
        """Between 90 and 150 ms after its start it leaves what podman itself no longer lists."""
        before = orphaned_storage()
        for milliseconds in (10, 50, 90, 105, 120, 135, 150, 180):
            with self.subTest(milliseconds):
                reply, pid = self.start_and_find(SLEEPER)
                time.sleep(milliseconds / 1000)
                kill(pid)
                self.assert_lost(reply)
        self.assert_still_serves()
        wait_until(lambda: orphaned_storage() <= before, 5, "nothing is left in the engine's storage")

    def test_both_of_the_engines_processes_while_it_boots(self):
        for milliseconds in (60, 100, 140):
            with self.subTest(milliseconds):
                reply, pid = self.start_and_find(SLEEPER)
                time.sleep(milliseconds / 1000)
                for each in [pid] + children_of(pid):
                    kill(each)
                self.assert_lost(reply)
        self.assert_still_serves()

    def test_the_monitor(self):
        reply = self.start_sleeper()
        for pid in wait_until(lambda: monitors_of(self.client.instance), 10, "a conmon process"):
            kill(pid)
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_the_guest(self):
        reply = self.start_sleeper()
        pid = self.wait_for_guest()
        as_account("podman", "unshare", "kill", "-9", str(pid))
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_the_container_by_the_engine(self):
        reply = self.start(SLEEPER)
        self.wait_for_guest()
        remove_container(containers_of(self.client.instance)[0])
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_other_runs_go_on(self):
        victim, engine = self.start_and_find(SLEEPER)
        self.wait_for_guest()
        engine = self.now(engine)
        other = self.start("import time; time.sleep(3); print('untouched')")
        wait_until(lambda: len(guests_of(self.client.instance)) == 2, 30, "two guests run")
        kill(engine)
        self.assertIn(self.answer(victim)["status"], ("error", "unavailable"))
        self.assertEqual(self.answer(other)["stdout"], "untouched\n")
        self.assert_nothing_left()


class Ending(unittest.TestCase):
    """A server ends: by its client, or by a signal."""

    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"stubborn": world.odd_server("stubborn", "descendants")})

    @classmethod
    def tearDownClass(cls):
        cls.world.close()

    def end(self, client, how, seconds=5):
        begun = time.monotonic()
        how(client)
        status = client.process.wait(patience(20))
        took = time.monotonic() - begun
        self.assertEqual(status, 0, self.world.log_of(client))
        self.assertLess(took, patience(seconds))
        self.world.assert_clean(client.instance, alive=False)

    HOW = {"end of input": lambda client: client.process.stdin.close(),
           "SIGTERM": lambda client: client.process.terminate(),
           "SIGINT": lambda client: client.process.send_signal(signal.SIGINT),
           "SIGHUP": lambda client: client.process.send_signal(signal.SIGHUP)}

    def test_idle(self):
        for name, how in self.HOW.items():
            with self.subTest(name):
                self.end(self.world.client(), how)

    def test_after_a_run(self):
        client = self.world.client()
        self.assertEqual(client.run("print(1)", wait=patience(90))["stdout"], "1\n")
        self.end(client, self.HOW["end of input"])

    def test_with_runs_going_on(self):
        for name in ("end of input", "SIGTERM"):
            with self.subTest(name):
                client = self.world.client()
                for _ in range(3):
                    client.start_run(SLEEPER)
                wait_until(lambda: len(guests_of(client.instance)) == 3, 30, "three guests run")
                self.end(client, self.HOW[name])

    def test_while_a_container_boots(self):
        for milliseconds in (0, 30, 80, 120, 200):
            with self.subTest(milliseconds):
                client = self.world.client()
                client.start_run(SLEEPER)
                time.sleep(milliseconds / 1000)
                self.end(client, self.HOW["end of input"])

    def test_with_a_server_that_does_not_want_to_end(self):
        client = self.world.client()
        answer = client.run("print(mcp_stubborn.pid())", ["stubborn"], wait=patience(90))
        self.assertEqual(answer["status"], "success", answer)
        self.assertGreaterEqual(len(processes_of(client.instance)), 2, "it has a descendant")
        self.end(client, self.HOW["end of input"], seconds=8)
        self.assertFalse(is_alive(answer["stdout"].strip()))

    def test_a_client_that_does_not_read(self):
        """Its answers don't hold the server."""
        process = self.world.start_command(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n'
        process.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":'
                            b'"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n')
        try:
            for number in range(1, 400):
                process.stdin.write(request % number)
            process.stdin.close()
            self.assertEqual(process.wait(patience(10)), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
