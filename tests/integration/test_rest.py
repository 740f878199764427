"""The REST driver with podman's real service: runs, limits, and what happens when the service dies."""

import contextlib
import json
import os
import signal
import time

from host import as_account, instances_dir, patience, wait_until
from instances import (containers_of, engine_commands, every_process, guests_of, is_alive, monitors_of,
                       orphaned_storage, services_of)
from lifecycle import SLEEPER, LifecycleTest, kill, settle
from stdio_client import command_line
from test_pool import PoolTest
from world import World, constraint_rows

REST = {"MCP_BRIDGE_DRIVER": "rest"}


class Runs(LifecycleTest):
    variables = REST

    @staticmethod
    def servers(world):
        return {"stub": world.recorder("calls")}

    def test_a_run_needs_no_command_of_the_engine(self):
        reply = self.start(SLEEPER, timeout=3)
        self.wait_for_guest()
        self.assertEqual(engine_commands(self.client.pid), [])
        self.assertEqual(len(services_of(self.client.instance)), 1)
        self.assertEqual(self.answer(reply)["status"], "timeout")
        self.assert_nothing_left()

    def test_both_streams_and_a_result_come_back(self):
        answer = self.run_well("""
            import os, sys
            print("out"); print("err", file=sys.stderr); os.write(1, b"raw\\xff\\n")
            6 * 7
            """)
        self.assertEqual((answer["stdout"], answer["stderr"], answer["result"]), ("out\nraw\ufffd\n", "err\n", 42))

    def test_much_output_arrives_whole(self):
        answer = self.run_well("import os\nfor _ in range(40): os.write(1, b'y' * 1_000_000)")
        self.assertEqual(answer["truncated"]["stdout"]["totalBytes"], 40_000_000)

    def test_tools_are_called_with_large_arguments_and_results(self):
        answer = self.run_well("""
            text = "x" * 3_000_000
            print((await mcp_stub.echo(message=text)).count("x"))
            """, ["stub"])
        self.assertEqual(answer["stdout"], "3000000\n")

    def test_a_timeout_and_a_cancel_kill(self):
        self.assertEqual(self.run_code("while True: pass", timeout=1)["status"], "timeout")
        self.assert_nothing_left()
        reply = self.start("import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)")
        self.wait_for_guest()
        self.client.cancel(reply)
        self.assert_no_answer(reply)
        self.assert_nothing_left()

    def test_the_exit_code_is_the_programs(self):
        for code in (3, 125, 127):
            answer = self.run_code(f"import os; os._exit({code})")
            self.assertEqual((answer["status"], answer["exitCode"]), ("error", code), answer)

    def test_a_guest_that_is_killed_is_told_from_one_that_ran_out_of_memory(self):
        answer = self.run_code("import os; os.kill(os.getpid(), 9)")
        self.assertEqual(answer["error"]["code"], "runtime_lost", answer)
        if self.holds("memory limit"):
            answers = [self.start("x = bytearray(900 << 20)") for _ in range(3)]
            self.assertEqual([self.answer(each)["status"] for each in answers], ["out_of_memory"] * 3)
        self.assert_nothing_left()

    def test_doctor_tells_the_driver_and_each_constraint_is_read_back(self):
        report = json.loads(self.world.command("doctor", "--json", seconds=120).stdout)
        rows = {row["name"]: row for row in report["constraints"]}
        self.assertEqual((len(rows), report["runtime"]["driver"]), (21, "rest"))
        for name, expected in report["runtime"]["expected"].items():
            self.assertEqual(rows[name]["held"], expected, rows[name])
        command = constraint_rows(World(MCP_BRIDGE_DRIVER="cli"))
        self.assertEqual({name: row["held"] for name, row in rows.items()},
                         {name: row["held"] for name, row in command.items()},
                         "the service holds what the command line holds")

    # -- the service's death -----------------------------------------------------------------------

    def kill_service(self):
        services = wait_until(lambda: services_of(self.client.instance), 10, "a service runs")
        for pid in services:
            kill(pid)

    def test_runs_of_a_service_that_dies_get_one_answer_each_and_the_next_has_another(self):
        replies = [self.start(SLEEPER) for _ in range(3)]
        wait_until(lambda: len(guests_of(self.client.instance)) == 3, 30, "three run")
        before = services_of(self.client.instance)
        self.kill_service()
        for reply in replies:
            # Unavailable: its guest was there, and had not booted.
            self.assertIn(self.answer(reply)["error"]["code"], ("runtime_lost", "unavailable"))
        self.assert_still_serves()
        self.assertNotEqual(services_of(self.client.instance), before)
        self.assert_nothing_left()
        surprises = [each for each in self.client.notifications if "method" not in each]
        self.assertEqual(surprises, [], "answers that nobody waits for")

    def test_a_service_that_dies_at_any_moment_of_a_start_leaves_nothing(self):
        orphans = orphaned_storage()
        self.run_well("pass")
        for wait in (0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13):
            reply = self.start("print('fine')")
            time.sleep(wait)
            self.kill_service()
            answer = self.answer(reply)
            if answer["status"] != "success":
                self.assertIn(answer["error"]["code"], ("runtime_lost", "unavailable"), answer)
            self.assert_still_serves()
            self.assert_nothing_left()
        wait_until(lambda: orphaned_storage() <= orphans, 10, "nothing is left in the engine's storage")

    def test_a_service_that_hangs_is_given_up(self):
        self.run_well("pass")
        hung = services_of(self.client.instance)
        for pid in hung:
            os.kill(pid, signal.SIGSTOP)
        try:
            # The run waits until the service is given up, and then has another.
            self.assertEqual(self.run_well("print(1)")["stdout"], "1\n")
            wait_until(lambda: not any(map(is_alive, hung)), 10, "what hung is gone")
        finally:
            for pid in hung:
                kill(pid)
        self.assert_still_serves()
        self.assert_nothing_left()

    def stop_service(self):
        """It is there and does nothing any more; as if it hung."""
        for pid in services_of(self.client.instance):
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(kill, pid)

    def test_runs_of_a_service_that_hangs_end_without_waiting_for_their_timeout(self):
        replies = [self.start(SLEEPER) for _ in range(2)]
        wait_until(lambda: len(guests_of(self.client.instance)) == 2, 30, "two run")
        time.sleep(1)
        self.stop_service()
        for reply in replies:
            # Unavailable: its guest was there, and had not booted.
            self.assertIn(self.answer(reply)["error"]["code"], ("runtime_lost", "unavailable"))
        self.assert_still_serves()
        self.assert_nothing_left()

    def test_a_service_that_hangs_does_not_keep_the_server(self):
        client = self.world.client()
        client.run("pass")
        for pid in services_of(client.instance):
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(kill, pid)
        client.start_run(SLEEPER)
        time.sleep(0.5)
        self.assertEqual(client.close(), 0)
        self.assertNotIn("left for the next start", self.world.log_of(client))
        self.world.assert_clean(client.instance, alive=False)

    def test_the_service_dies_with_the_server_and_the_next_sweeps(self):
        client = self.world.client()
        client.start_run(SLEEPER)
        wait_until(lambda: guests_of(client.instance), 30, "a guest runs")
        service = services_of(client.instance)
        self.assertTrue(service)
        kill(client.pid)
        client.process.wait(patience(10))
        wait_until(lambda: not any(map(is_alive, service)), 10, "the service has ended")
        settle(client.instance)
        self.assertEqual(self.world.command("doctor", "--sweep").returncode, 0)
        self.world.assert_clean(client.instance, alive=False)

    def test_a_monitor_that_dies_is_noticed(self):
        reply = self.start_sleeper()
        for pid in monitors_of(self.client.instance):
            kill(pid)
        self.assertEqual(self.answer(reply)["error"]["code"], "runtime_lost")
        self.assert_still_serves()
        self.assert_nothing_left()


class UsersOwnService(LifecycleTest):
    """A service that the user runs, named by CONTAINER_HOST."""

    variables = REST

    @contextlib.contextmanager
    def users_client(self):
        """The server with such a service, and the service's socket."""
        folder = f"{instances_dir()}/../test-{os.getpid()}"
        as_account("mkdir", "-m", "700", folder)
        report = json.loads(self.world.command("doctor", "--json", seconds=120).stdout)
        runtime = report["runtime"]["ociRuntime"]
        socket = f"{os.path.realpath(folder)}/podman.sock"
        try:
            as_account("sh", "-c", f"podman --runtime {runtime} system service -t 0 unix://{socket} </dev/null >/dev/null 2>&1 &")
            wait_until(lambda: os.path.exists(socket), 20, "the user's service listens")
            yield self.world.client(CONTAINER_HOST=f"unix://{socket}"), socket
        finally:
            for pid in self.users_services(socket):
                kill(pid)
            as_account("rm", "-rf", folder)

    def assert_ends_well(self, client, socket):
        self.assertEqual(client.close(patience(10)), 0)
        self.world.assert_clean(client.instance, alive=False)
        self.assertTrue(self.users_services(socket))

    def test_it_is_used_and_left_alone(self):
        with self.users_client() as (client, socket):
            answer = client.run("print(6 * 7)", wait=patience(90))
            self.assertEqual(answer.get("stdout"), "42\n", answer)
            self.assertEqual(services_of(client.instance), [])
            self.assert_ends_well(client, socket)

    def test_it_is_left_when_it_hangs(self):
        with self.users_client() as (client, socket):
            client.run("pass", wait=patience(90))
            reply = client.start_run(SLEEPER)
            self.wait_for_guest(client)
            time.sleep(patience(1))  # one that is stopped in the middle of a start may hold the engine's locks
            for pid in self.users_services(socket):
                os.kill(pid, signal.SIGSTOP)
            # Unavailable: its guest was there, and had not booted.
            self.assertIn(self.answer(reply)["error"]["code"], ("runtime_lost", "unavailable"))
            answer = client.run("print(6 * 7)", wait=patience(90))
            self.assertEqual(answer.get("stdout"), "42\n", (answer, self.world.log_of(client)))
            self.assertEqual(len(services_of(client.instance)), 1)
            self.assert_ends_well(client, socket)

    @staticmethod
    def users_services(socket):
        return [pid for pid in every_process() if f"unix://{socket}" in command_line(pid)]


class Pool(PoolTest):
    variables = {"MCP_BRIDGE_POOL": "2", **REST}

    def test_sandboxes_wait_without_processes_of_the_engine_and_are_taken(self):
        first = self.settled(2)
        self.assertEqual(engine_commands(self.client.pid), [])
        self.assertEqual(self.run_well("print(6 * 7)")["stdout"], "42\n")
        second = self.settled(2)
        self.assertEqual(len(first & second), 1)

    def test_those_that_a_service_takes_with_it_are_replaced(self):
        first = self.settled(2)
        for pid in services_of(self.client.instance):
            kill(pid)
        wait_until(lambda: not first & set(guests_of(self.client.instance)), 30, "the old ones are gone")
        self.assertEqual(self.run_well("print(6 * 7)")["stdout"], "42\n")
        self.assertFalse(first & self.settled(2))
        wait_until(lambda: len(containers_of(self.client.instance)) == 2, 30, "no more containers than that")
