"""Life and death of runs and servers: whatever is killed, at whatever moment, everybody who waits gets an answer
and nothing is left."""

import json
import os
import signal
import subprocess
import time
import unittest

from world import (LONG, BulkheadTest, World, account, as_account, children_of, containers_of, engine_commands,
                   guests_of, instances_dir, is_alive, is_root, leftovers, monitors_of, open_descriptors,
                   orphaned_storage, patience, processes_of, read, resident_kib, wait_until, zombies_of)

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def settle(instance):
    """A sweep leaves folders alone that are ten seconds young: they may be of a server that is just starting.
    Makes a dead one's older than that."""
    folder = f"{instances_dir()}/{instance}"
    os.utime(folder, (time.time() - 60,) * 2)


class LifecycleTest(BulkheadTest):
    ending = frozenset()  # guests of earlier runs that are still there

    def start(self, *arguments, **options):
        self.ending = frozenset(guests_of(self.client.instance))
        return super().start(*arguments, **options)

    def wait_for_guest(self, client=None):
        """A running guest of the server; its process. Not one that is about to end: a run is answered first."""
        instance = (client or self.client).instance
        return wait_until(lambda: [pid for pid in guests_of(instance) if pid not in self.ending], 30,
                          "a guest runs")[0]

    def start_and_find(self, code):
        """Starts a run; its answer, and the engine's command for it as soon as there is one."""
        others = engine_commands(self.client.pid)
        reply = self.start(code)
        new = wait_until(lambda: [pid for pid in engine_commands(self.client.pid) if pid not in others], 30,
                         "a container is started")
        return reply, new[0]

    def assert_no_answer(self, reply, seconds=0.5):
        with self.assertRaises(TimeoutError):
            reply.message(seconds)


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
        refused = wait_until(lambda: [r for r in replies if r._ready.is_set()], 20, "some are refused")
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
        kill(engine)
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
        reply = self.start(SLEEPER)
        self.wait_for_guest()
        for pid in wait_until(lambda: monitors_of(self.client.instance), 10, "a conmon process"):
            kill(pid)
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_the_guest(self):
        reply = self.start(SLEEPER)
        pid = self.wait_for_guest()
        as_account("podman", "unshare", "kill", "-9", str(pid))
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_the_container_by_the_engine(self):
        reply = self.start(SLEEPER)
        self.wait_for_guest()
        name = containers_of(self.client.instance)[0].split()[0]
        as_account("podman", "rm", "-f", "-t", "0", name)
        self.assert_lost(reply)
        self.assert_still_serves()

    def test_other_runs_go_on(self):
        victim, engine = self.start_and_find(SLEEPER)
        self.wait_for_guest()
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
        wait_until(lambda: guests_of(client.instance) and len(processes_of(client.instance)) > 5, 30,
                   "a run and a server go on")
        wait_until(lambda: self.stubborn_processes(client) == 2, 30, "the server and its descendant")
        client.process.kill()
        client.close()

    def stubborn_processes(self, client):
        return len(processes_of(client.instance)) - len(processes_of(client.instance, upstreams=False))

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
