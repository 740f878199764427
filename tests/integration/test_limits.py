"""Limits used up from inside, and what doctor says of each constraint on this host."""

import json
import re
import unittest

from host import is_root, patience, wait_until
from instances import guests_of
from stdio_client import status_field
from world import BulkheadTest, World


class Limits(BulkheadTest):
    """Limits other than the defaults, used up."""

    variables = {"MCP_BRIDGE_MEMORY": "128m", "MCP_BRIDGE_PIDS": "48", "MCP_BRIDGE_CPUS": "0.5"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client.run("pass", wait=patience(90))

    def test_memory(self):
        if not self.holds("memory limit"):
            return
        for size, status in ((60, "success"), (200, "out_of_memory")):
            with self.subTest(size):
                answer = self.run_code(f"b = bytearray({size} << 20); b[::4096] = b[::4096]")
                self.assertEqual(answer["status"], status, answer)

    def test_swap_is_no_way_around_it(self):
        if not self.holds("swap"):
            return
        limits = json.loads(self.run_well("""
            import json
            def value(*paths):
                for path in paths:
                    try:
                        return open("/sys/fs/cgroup/" + path).read().strip()
                    except OSError:
                        pass
            print(json.dumps({"memory": value("memory.max", "memory/memory.limit_in_bytes"),
                              "together": value("memory/memory.memsw.limit_in_bytes"),
                              "swap": value("memory.swap.max"),
                              "pids": value("pids.max", "pids/pids.max")}))
            """)["stdout"])
        self.assertEqual(int(limits["memory"]), 128 << 20)
        if limits["together"] is not None:
            self.assertEqual(int(limits["together"]), 128 << 20)
        if limits["swap"] is not None:
            self.assertEqual(limits["swap"], "0")
        self.assertEqual(limits["pids"], "48")

    def test_scratch_folders_count_as_memory(self):
        if not self.holds("memory limit"):
            return
        answer = self.run_code("""
            for folder in ("/workspace", "/dev/shm", "/tmp"):
                with open(folder + "/f", "wb", buffering=0) as f:
                    for _ in range(120):
                        try: f.write(b"x" * (1 << 20))
                        except OSError: break
            """)
        self.assertEqual(answer["status"], "out_of_memory", answer)
        self.assert_still_serves()

    def test_a_fork_bomb_is_bounded(self):
        if not self.holds("pids limit"):
            return
        answer = self.run_well("""
            import os, time
            count = 0
            try:
                while count < 5000:
                    if os.fork() == 0:
                        time.sleep(60)
                        os._exit(0)
                    count += 1
            except OSError as e:
                print(type(e).__name__, count)
            """)
        name, count = answer["stdout"].split()
        self.assertEqual(name, "BlockingIOError")
        self.assertTrue(30 <= int(count) <= 47, count)
        self.assert_nothing_left()

    def test_a_bomb_of_forks_that_fork_ends_with_its_run(self):
        if not self.holds("pids limit"):
            return
        answer = self.run_code("""
            import os
            while True:
                try: os.fork()
                except OSError: pass
            """, timeout=3)
        self.assertEqual(answer["status"], "timeout", answer)
        self.assert_nothing_left()
        self.assert_still_serves()

    def test_threads_are_bounded(self):
        if not self.holds("pids limit"):
            return
        answer = self.run_well("""
            import threading
            over, count = threading.Event(), 0
            try:
                while count < 5000:
                    threading.Thread(target=over.wait, daemon=True).start()
                    count += 1
            except RuntimeError:
                pass
            over.set()
            print(count)
            """)
        self.assertTrue(25 <= int(answer["stdout"]) <= 47, answer["stdout"])

    def test_cpus(self):
        """Two busy processes on half a processor: the ratio of work to time, not the time itself."""
        if not self.holds("cpus"):
            return
        answer = self.run_well("""
            import os, time
            begun = time.monotonic()
            if os.fork() == 0:
                while time.monotonic() < begun + 3: pass
                os._exit(0)
            while time.monotonic() < begun + 3: pass
            os.wait()
            used = os.times()
            print((used.user + used.system + used.children_user + used.children_system)
                  / (time.monotonic() - begun))
            """)
        self.assertLess(float(answer["stdout"]), 0.75)


class Doctor(BulkheadTest):
    """What `bulkhead doctor` prints is what the tests above see."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.done = cls.world.command("doctor", "--json", seconds=120)
        cls.report = json.loads(cls.done.stdout)
        cls.rows = {row["name"]: row for row in cls.report["constraints"]}

    def test_every_constraint_holds(self):
        """But for limits where the host delegates no cgroups; then that is the one thing it says."""
        broken = [row for row in self.rows.values() if not row["held"]]
        self.assertLessEqual({row["name"] for row in broken}, {"memory limit", "swap", "pids limit", "idle sessions"},
                             broken)
        self.assertEqual([row for row in broken if not row["remedy"]], [])
        if is_root():
            self.assertEqual(broken, [], "setup gave the account all it needs")
        self.assertEqual((self.report["ok"], self.done.returncode), (not broken, 1 if broken else 0))
        self.assertLessEqual({"network", "other sockets", "root file system", "other writable folders", "/tmp",
                              "/workspace", "/dev/shm", "user inside", "user outside", "capabilities",
                              "no new privileges", "seccomp", "memory limit", "swap", "pids limit", "idle sessions", "ulimits",
                              "/ipc", "/projects", "init process", "environment"}, set(self.rows))

    def test_it_names_the_uid_that_guests_have(self):
        reply = self.start("import time; time.sleep(600)")
        pid = wait_until(lambda: guests_of(self.client.instance), 20, "the guest's process")[0]
        uid = status_field(pid, "Uid").split()[0]
        self.client.cancel(reply)
        self.assertEqual(self.rows["user outside"]["found"], uid)

    def test_it_names_the_engine(self):
        runtime = self.report["runtime"]
        self.assertIn(runtime["engine"], ("podman", "docker"))
        self.assertTrue(runtime["rootless"])
        python = self.run_well("import sys; print('.'.join(map(str, sys.version_info[:3])))")["stdout"].strip()
        self.assertEqual(runtime["python"], python)

    def test_the_table_says_the_same(self):
        done = self.world.command("doctor", seconds=120)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, self.done.returncode, done.stderr)
        for name, row in self.rows.items():
            self.assertRegex(text, rf"(?m)^{'held' if row['held'] else 'NOT '}  {re.escape(name)} ")


class DoctorRefuses(unittest.TestCase):
    def test_an_engine_that_can_not_do_what_is_asked(self):
        world = World({}, MCP_BRIDGE_CONTAINER_USER="4000000:4000000")
        try:
            done = world.command("doctor", "--json", seconds=120)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("sub-uids", (done.stdout + done.stderr).decode())
        finally:
            world.close()


if __name__ == "__main__":
    unittest.main()
