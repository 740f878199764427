"""What is left of killed servers goes; what is not theirs stays; and run after run a server stays as it is."""

import json
import os
import subprocess
import time
import unittest

from host import account, instances_dir, is_root, patience, read, wait_until
from instances import engine_commands, guests_of, leftovers, orphaned_storage, processes_of, zombies_of
from lifecycle import SLEEPER, LifecycleTest, settle
from stdio_client import children_of, open_descriptors, resident_kib
from world import LONG, World


class Sweeping(unittest.TestCase):
    """What a killed server leaves goes with the next one, or with `bulkhead doctor --sweep`; what belongs to
    living servers stays."""

    def setUp(self):
        self.world = World(lambda world: {"stubborn": world.odd_server("stubborn", "descendants")})

    def tearDown(self):
        self.world.close()

    def kill_server(self, client):
        """SIGKILL, with a run, an MCP server that doesn't end by itself and its descendant going on."""
        client.start_run("print(mcp_stubborn.pid(), flush=True)\n" + SLEEPER, ["stubborn"])
        wait_until(lambda: guests_of(client.instance) and len(processes_of(client.instance)) > 3, 30,
                   "a run and a server go on")
        wait_until(lambda: self.stubborn_processes(client) == 2, 30, "the server and its descendant")
        client.process.kill()
        client.close()

    def stubborn_processes(self, client):
        mark = f"BULKHEAD_CHILD={client.instance}/"
        return sum(mark in read(f"/proc/{pid}/environ") for pid in processes_of(client.instance))

    def sweep(self):
        """Nothing else is done, and its status is the sweep's."""
        done = self.world.command("doctor", "--sweep", "--json", seconds=120)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if report["ok"] else 1, done.stderr)
        self.assertNotIn("error", report)
        self.assertIn("swept", report)

    def test_doctor_sweeps_and_spares_the_living(self):
        dead = self.world.client()
        living = self.world.client()
        running = living.start_run("import time; time.sleep(25); print('untouched')", timeout=100)
        wait_until(lambda: guests_of(living.instance), 30, "a guest of the living one")
        self.kill_server(dead)
        self.assertTrue(leftovers(dead.instance, alive=False), "a killed server does leave something")
        settle(dead.instance)
        self.sweep()
        self.world.assert_clean(dead.instance, alive=False)
        answer = running.result(patience(90))["structuredContent"]
        self.assertEqual((answer["status"], answer["stdout"]), ("success", "untouched\n"))

    def test_the_next_server_sweeps(self):
        dead = self.world.client()
        self.kill_server(dead)
        # Not made older: this much time has to pass.
        folder = f"{instances_dir()}/{dead.instance}"
        time.sleep(max(0.0, os.stat(folder).st_mtime + 11 - time.time()))
        following = self.world.client()
        self.assertEqual(following.run("print(1)", wait=patience(90))["stdout"], "1\n")
        self.world.assert_clean(dead.instance, alive=False, seconds=15)
        self.world.assert_clean(following.instance, alive=True)

    def test_a_sweep_that_is_killed_itself(self):
        dead = self.world.client()
        self.kill_server(dead)
        settle(dead.instance)
        for milliseconds in (40, 100, 200, 400):
            sweep = self.world.start_command("doctor", "--sweep", stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL)
            time.sleep(milliseconds / 1000)
            sweep.kill()
            sweep.wait()
        settle(dead.instance)  # what a sweep has removed made the folder young again
        self.sweep()
        self.world.assert_clean(dead.instance, alive=False)

    def test_a_server_killed_while_a_container_boots(self):
        dead = []
        for milliseconds in (40, 90, 130, 180):
            client = self.world.client()
            client.start_run(SLEEPER)
            wait_until(lambda: engine_commands(client.pid), 30, "a container is started")
            time.sleep(milliseconds / 1000)
            client.process.kill()
            client.close()
            dead.append(client.instance)
        for instance in dead:
            settle(instance)
        self.sweep()
        for instance in dead:
            self.world.assert_clean(instance, alive=False)


class Endurance(LifecycleTest):
    """Run after run, the server stays as it is."""

    RUNS = 200 if LONG else 40

    @staticmethod
    def servers(world):
        return {"stub": world.recorder("calls")}

    def test_many_runs(self):
        code = "print(await mcp_stub.echo(message='x' * 1000))"
        for _ in range(8):
            self.run_well(code, ["stub"])
        self.assert_nothing_left()
        before = (resident_kib(self.client.pid), open_descriptors(self.client.pid),
                  len(children_of(self.client.pid)), orphaned_storage())
        for begin in range(0, self.RUNS, 4):
            replies = [self.start(code, ["stub"]) for _ in range(3)]
            replies.append(self.start("import os; os.write(1, b'y' * 3_000_000); 1/0"))
            for reply in replies[:3]:
                self.assertEqual(self.answer(reply)["stdout"], "x" * 1000 + "\n")
            self.assertEqual(self.answer(replies[3])["error"]["type"], "ZeroDivisionError")
        self.assert_nothing_left()
        self.assertEqual(zombies_of(self.client.pid), [])
        wait_until(lambda: open_descriptors(self.client.pid) <= before[1], 5, "descriptors are closed")
        wait_until(lambda: len(children_of(self.client.pid)) <= before[2], 5, "no more children than before")
        wait_until(lambda: orphaned_storage() <= before[3], 5, "nothing in the engine's storage")
        self.assertLess(resident_kib(self.client.pid) - before[0], 8 * 1024, "KiB of memory gained")


class Unusable(unittest.TestCase):
    """What can't work says so once, with the remedy; and the server answers its client all the same."""

    @classmethod
    def setUpClass(cls):
        cls.world = World({})

    @classmethod
    def tearDownClass(cls):
        cls.world.close()

    def complaint(self, **variables):
        client = self.world.client(**variables)
        try:
            self.assertLess(client.initialize_seconds, patience(2))
            tools = client.request("tools/list").result(patience(10))["tools"]
            self.assertEqual([tool["name"] for tool in tools], ["run_python"])
            answer = client.run("print(1)", wait=patience(60))
            self.assertEqual(answer["status"], "unavailable", answer)
            self.assertNotIn("stdout", answer)
            # Again, since what is missing may be there by now.
            self.assertEqual(client.run("print(1)", wait=patience(60))["status"], "unavailable")
            return answer["error"]["message"]
        finally:
            self.assertEqual(client.close(patience(20)), 0)
            self.world.assert_clean(client.instance, alive=False)

    def test_no_engine(self):
        message = self.complaint(MCP_BRIDGE_RUNTIME="/nonexistent/podman")
        self.assertIn("/nonexistent/podman", message)
        self.assertIn("MCP_BRIDGE_RUNTIME", message)

    def test_an_engine_that_is_none(self):
        self.assertTrue(self.complaint(MCP_BRIDGE_RUNTIME="/bin/false"))

    def test_no_image(self):
        message = self.complaint(MCP_BRIDGE_IMAGE="localhost/bulkhead-no-such-image:1")
        self.assertIn("bulkhead-no-such-image", message)
        self.assertIn("bulkhead image build", message)

    def test_an_oci_runtime_that_is_none(self):
        self.assertTrue(self.complaint(MCP_BRIDGE_OCI_RUNTIME="/nonexistent/runc"))

    def test_root(self):
        """Root's containers only by opt-in: without an account to become, nothing starts."""
        if is_root():
            done = self.world.command("--account", "nobody-of-that-name", "servers")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            message = done.stderr.decode()
            for remedy in ("deploy/setup.sh", "--account", "MCP_BRIDGE_ALLOW_ROOTFUL=1"):
                self.assertIn(remedy, message)
            self.assertEqual(len(message.splitlines()), 1)
            refused = self.world.command("--account", "root", "servers")
            self.assertEqual(refused.returncode, 2, "root is no unprivileged account")
        client = self.world.client()
        try:
            uid = int(os.stat(f"/proc/{client.pid}").st_uid)
            self.assertEqual(uid, account().pw_uid)
            self.assertNotEqual(uid, 0)
            status = read(f"/proc/{client.pid}/status")
            self.assertRegex(status, r"CapEff:\s+0000000000000000\n")
            groups = [int(g) for g in status.split("Groups:")[1].split("\n")[0].split()]
            self.assertNotIn(0, groups)
        finally:
            client.close()

    def test_bad_settings(self):
        bad = {"MCP_BRIDGE_TIMEOUT": "soon", "MCP_BRIDGE_MAX_TIMEOUT": "-1", "MCP_BRIDGE_MEMORY": "lots",
               "MCP_BRIDGE_PIDS": "0", "MCP_BRIDGE_CPUS": "none", "MCP_BRIDGE_CONTAINER_USER": "0:0",
               "MCP_BRIDGE_RUNTIME": "lxc", "MCP_BRIDGE_IMAGE": "--privileged", "MCP_BRIDGE_STATE_DIR": "relative",
               "MCP_BRIDGE_OUTPUT_MODE": "xml", "MCP_BRIDGE_LOG_LEVEL": "loud", "MCP_BRIDGE_STRICT": "maybe",
               "MCP_BRIDGE_CONCURRENT_RUNS": "many"}
        for name, value in bad.items():
            with self.subTest(name):
                done = self.world.command(**{name: value})
                self.assertEqual((done.returncode, done.stdout), (2, b""))
                lines = done.stderr.decode().splitlines()
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(name, lines[0])
                self.assertIn(value, lines[0])
        done = self.world.command(**bad)
        self.assertEqual(len(done.stderr.decode().splitlines()), len(bad), "all at once, one line each")


if __name__ == "__main__":
    unittest.main()
