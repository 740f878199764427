"""The warm pool: runs begin in sandboxes that wait for them, each of which serves one run."""

import os
import signal
import time

from host import as_account, patience, wait_until
from instances import containers_of, engine_commands, guests_of, monitors_of, remove_container
from world import POOLED, BulkheadTest

IMAGE = "localhost/bulkhead-sandbox:latest"
COUNT = "import os, threading; print(os.listdir('/tmp'), os.listdir('/workspace'), threading.active_count())"


class PoolTest(BulkheadTest):
    def idle(self, count):
        """The guests that wait, once they are so many."""
        return set(wait_until(lambda: self.counted(count), 30, f"{count} sandboxes wait"))

    def counted(self, count):
        # A guest that has just booted still becomes idle; podman lists it before.
        guests = guests_of(self.client.instance)
        return guests if len(guests) == count else None

    def settled(self, count, seconds=1.0):
        """The same guests for some time: they have booted, and nothing is on its way out."""
        deadline = time.monotonic() + patience(60)
        guests = self.idle(count)
        while time.monotonic() < deadline:
            time.sleep(patience(seconds))
            now = self.idle(count)
            if now == guests:
                return guests
            guests = now
        raise AssertionError("the pool doesn't settle")


class OneWaiting(PoolTest):
    variables = {"MCP_BRIDGE_POOL": "1"}

    def test_a_run_takes_what_waits_and_the_next_gets_another(self):
        first = self.settled(1)
        reply = self.start("import time; time.sleep(3)")
        second = self.idle(2) - first
        self.assertEqual(len(second), 1)
        self.assertEqual(self.answer(reply)["status"], "success")
        self.assertEqual(self.settled(1), second)
        self.run_well("pass")
        self.assertFalse(second & self.settled(1))

    def test_a_sandbox_serves_one_run_only(self):
        """A file, a process, a thread, a variable and a module of one run are not there in the next."""
        clean = self.run_well(COUNT)["stdout"]
        for _ in range(3):
            self.settled(1)
            self.run_well("""
                import os, subprocess, sys, threading, time, types
                for folder in ("/tmp", "/workspace"):
                    open(folder + "/left", "w").write("x")
                os.environ["LEFT"] = "x"
                sys.modules["left"] = types.ModuleType("left")
                globals()["left"] = 1
                threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
                subprocess.Popen(["sleep", "600"], start_new_session=True)
                """)
            self.assertEqual(self.run_well(COUNT)["stdout"], clean)
            answer = self.run_well("""
                import glob, os, sys
                print(os.environ.get("LEFT"), "left" in sys.modules, "left" in globals(),
                      [p for p in glob.glob("/proc/[0-9]*/cmdline") if "sleep" in open(p).read()])
                """)
            self.assertEqual(answer["stdout"], "None False False []\n")

    def kill_idle(self, how, times=3, certain=False):
        for _ in range(times):
            before = self.settled(1)
            how(before)
            # Before the pool can have noticed. Where the word that the run began may be lost, it isn't run again.
            answer = self.run_code("print(6 * 7)")
            if certain or answer["status"] == "success":
                self.assertEqual(answer.get("stdout"), "42\n", answer)
            else:
                self.assertEqual(answer["error"]["code"], "runtime_lost", answer)
            wait_until(lambda: not before & set(guests_of(self.client.instance)), 60, "the dead sandbox is gone")
            self.assertEqual(self.run_well("print(6 * 7)")["stdout"], "42\n")

    def test_one_whose_guest_dies_is_replaced(self):
        self.kill_idle(lambda guests: as_account("podman", "unshare", "kill", "-9", *map(str, guests)), certain=True)

    def test_one_whose_engine_command_dies_is_replaced(self):
        self.kill_idle(lambda guests: [os.kill(pid, signal.SIGKILL) for pid in engine_commands(self.client.pid)])

    def test_one_whose_monitor_dies_is_replaced(self):
        # Without it podman's command takes 20 s to give up.
        self.kill_idle(lambda guests: [os.kill(pid, signal.SIGKILL) for pid in monitors_of(self.client.instance)], 1)

    def test_one_that_the_engine_removes_is_replaced(self):
        self.kill_idle(lambda guests: [remove_container(each) for each in containers_of(self.client.instance)])

    def test_one_that_is_stopped_is_noticed_when_it_does_not_begin_its_run(self):
        guests = self.settled(1)
        as_account("podman", "unshare", "kill", "-STOP", *map(str, guests))
        self.assertEqual(self.run_code("print(1)", timeout=1)["error"]["code"], "runtime_lost")
        self.assertFalse(guests & self.settled(1))

    def test_another_image_replaces_what_waits(self):
        before = self.settled(1)
        name = f"localhost/bulkhead-test-{os.getpid()}"
        as_account("podman", "tag", IMAGE, name)
        try:
            wait_until(lambda: not before & set(guests_of(self.client.instance)), 30, "the old sandbox is gone")
            self.assertFalse(before & self.settled(1))
        finally:
            as_account("podman", "untag", name, name)


class AsUsersHaveIt(PoolTest):
    variables = POOLED

    def test_nothing_waits_before_the_first_run_then_it_grows_with_demand(self):
        client = self.world.client()
        client.request("tools/list").result(patience(30))
        time.sleep(1)
        self.assertEqual(containers_of(client.instance), [])
        self.assertEqual(client.run("print(1)", wait=patience(90))["stdout"], "1\n")
        wait_until(lambda: len(guests_of(client.instance)) == 3, 60, "three wait: the floor and one that was missed")
        replies = [client.start_run("import time; time.sleep(1)") for _ in range(6)]
        for reply in replies:
            self.assertEqual(self.answer(reply)["status"], "success")
        wait_until(lambda: len(guests_of(client.instance)) > 4, 60, "more wait")
        self.assertEqual(client.close(patience(10)), 0)
        self.world.assert_clean(client.instance, alive=False)

    def test_many_at_once_are_all_answered(self):
        replies = [self.start(f"print({number})") for number in range(40)]
        self.assertEqual([self.answer(reply)["stdout"] for reply in replies], [f"{n}\n" for n in range(40)])
