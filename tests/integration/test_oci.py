"""crun or runc without an engine's command: the tests of what every driver has to do, and of what this one has of
its own."""

import glob
import os
import time
import unittest

import test_chaos
import test_constraints
import test_execution
import test_lifecycle
import test_limits
import test_pool
import test_sweeping
from host import account, as_account, instances_dir, patience, wait_until
from instances import (bundles_of, children_of, command_line, engine_commands, guests_of,
                       holds_namespaces, is_alive)
from lifecycle import SLEEPER, LifecycleTest, kill
from stdio_client import resident_kib
from world import POOLED, World

OCI = {"MCP_BRIDGE_RUNTIME": "oci"}
# There is no monitor: the container's first process is the server's own child. Its start is over too soon for the
# moments at which others are killed; see Processes.
NOT_HERE = None


class Execution(test_execution.Execution):
    variables = {**POOLED, **OCI}


class Output(test_execution.Output):
    variables = {**POOLED, **OCI}


class Endings(test_execution.Endings):
    variables = {**test_execution.Endings.variables, **OCI}


class Constraints(test_constraints.Constraints):
    variables = {**test_constraints.Constraints.variables, **OCI}


class Limits(test_limits.Limits):
    variables = {**test_limits.Limits.variables, **OCI}


class Doctor(test_limits.Doctor):
    variables = OCI

    def test_it_names_the_driver(self):
        runtime = self.report["runtime"]
        self.assertEqual((runtime["driver"], runtime["engine"]), ("oci", "podman"))
        self.assertIn(runtime["ociRuntime"], ("crun", "runc"))
        self.assertRegex(runtime["ociVersion"], r"\d+\.\d+")


class Cancelling(test_lifecycle.Cancelling):
    variables = {**test_lifecycle.Cancelling.variables, **OCI}


class Timeouts(test_lifecycle.Timeouts):
    variables = OCI


class Killing(test_lifecycle.Killing):
    variables = OCI
    test_the_monitor = NOT_HERE
    test_the_engines_command_while_it_boots = NOT_HERE
    test_both_of_the_engines_processes_while_it_boots = NOT_HERE


class Ending(test_lifecycle.Ending):
    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"stubborn": world.odd_server("stubborn", "descendants")}, **OCI)


class OneWaiting(test_pool.OneWaiting):
    variables = {**test_pool.OneWaiting.variables, **OCI}
    test_one_whose_monitor_dies_is_replaced = NOT_HERE


class AsUsersHaveIt(test_pool.AsUsersHaveIt):
    variables = {**POOLED, **OCI}


class Sweeping(test_sweeping.Sweeping):
    def setUp(self):
        self.world = World(lambda world: {"stubborn": world.odd_server("stubborn", "descendants")}, **OCI)


class SweptByTheOther(Sweeping):
    """Servers whose sandboxes are started by an engine's command remove what one without left."""

    def sweep(self):
        self.world.variables = {}
        super().sweep()


class Endurance(test_sweeping.Endurance):
    variables = OCI


class Chaos(test_chaos.Chaos):
    variables = {**test_chaos.Chaos.variables, **OCI}


class Processes(LifecycleTest):
    """What there is of processes, and what goes with it."""

    variables = OCI

    def holder(self):
        return [pid for pid in children_of(self.client.pid) if holds_namespaces(pid)]

    def test_no_engine_and_no_monitor(self):
        """A container is its init and its program, and nothing else of it stays."""
        _, init = self.start_and_find(SLEEPER)
        guest = self.wait_for_guest()
        wait_until(lambda: os.path.basename((command_line(init) or [""])[0]) == "bulkhead-init" or
                   [pid for pid in engine_commands(self.client.pid)
                    if "bulkhead-init" in command_line(pid)[0]], 10, "the OCI runtime has ended")
        init = engine_commands(self.client.pid)[0]
        self.assertEqual(children_of(init), [guest])
        self.assertEqual(len(self.holder()), 1)
        wait_until(lambda: sorted(children_of(self.client.pid)) == sorted([init, guest, *self.holder()]), 30,
                   "the sweep after the start has ended, and there is nothing else")
        self.assertLess(resident_kib(init), 2048, "KiB for it")

    def test_the_namespaces_come_back(self):
        """Whoever ends the process that holds them: the next run has new ones."""
        self.run_well("print(1)")
        before = self.holder()
        kill(before[0])
        wait_until(lambda: not is_alive(before[0]), 5, "it is gone")
        self.assertEqual(self.run_well("print(2)")["stdout"], "2\n")
        self.assertEqual(len(self.holder()), 1)
        self.assertNotEqual(self.holder(), before)

    def test_runs_at_the_same_time_share_the_next_namespaces(self):
        self.run_well("print(1)")
        for _ in range(3):
            for pid in self.holder():
                kill(pid)
            replies = [self.start("print(2)") for _ in range(4)]
            answers = [self.answer(reply) for reply in replies]
            self.assertEqual([answer.get("stdout") for answer in answers], ["2\n"] * 4, answers)
            wait_until(lambda: len(self.holder()) == 1, 10, "one holds them")

    def test_its_start_is_cut_short(self):
        """At every moment, from the first exec until the guest runs."""
        for milliseconds in range(0, 60, 3):
            with self.subTest(milliseconds):
                reply, _ = self.start_and_find(SLEEPER)
                time.sleep(milliseconds / 1000)
                # Whichever it is by now: the OCI runtime, or the container's first process.
                wait_until(lambda: [kill(pid) for pid in engine_commands(self.client.pid)], 10, "one to kill")
                answer = self.answer(reply)
                self.assertIn(answer["error"]["code"], ("runtime_lost", "unavailable"), answer)
                self.assert_nothing_left()
        self.assert_still_serves()


class Images(unittest.TestCase):
    """Unpacked once, used by all, and gone when nobody uses it any more. The folder of unpacked images is the
    account's, so others may lie there, too."""

    IMAGE = "localhost/bulkhead-sandbox:latest"

    @classmethod
    def setUpClass(cls):
        """The same files as two other images."""
        cls.images = [f"localhost/bulkhead-test-{os.getpid()}-{number}" for number in range(2)]
        name = f"bulkhead-test-{os.getpid()}"
        as_account("podman", "create", "--name", name, cls.IMAGE, "true")
        for image in cls.images:
            as_account("podman", "commit", "--quiet", "--message", image, "--format", "docker", name, image)
        as_account("podman", "rm", name)

    @classmethod
    def tearDownClass(cls):
        as_account("podman", "image", "rm", "--force", *cls.images, check=False)

    def setUp(self):
        self.world = World(**OCI)

    def tearDown(self):
        self.world.close()

    def unpacked(self):
        return {os.path.basename(path) for path in glob.glob(account().pw_dir + "/.cache/bulkhead/rootfs/*")
                if os.path.isdir(path)}

    def id_of(self, image):
        return as_account("podman", "image", "inspect", "--format", "{{.Id}}", image).strip()

    def run_in(self, image, client=None):
        client = client or self.world.client(MCP_BRIDGE_IMAGE=image)
        self.assertEqual(client.run("print(42)", wait=patience(90)).get("stdout"), "42\n", self.world.log_of(client))
        return client

    def test_one_folder_for_each_image_in_use(self):
        ids = {self.id_of(image) for image in [self.IMAGE, *self.images]}
        self.assertEqual(len(ids), 3)
        clients = [self.run_in(image) for image in [self.IMAGE, *self.images]]
        self.assertLessEqual(ids, self.unpacked())
        self.run_in(self.IMAGE, clients[0])
        for client in clients:
            self.assertEqual(client.close(patience(10)), 0)
            self.world.assert_clean(client.instance, alive=False)

    def test_what_nobody_uses_goes_when_another_is_unpacked(self):
        self.run_in(self.images[0]).close(patience(10))
        self.forget(self.images[1])
        self.run_in(self.images[1]).close(patience(10))
        self.assertIn(self.id_of(self.images[0]), self.unpacked(), "it was used a moment ago")
        lock = f"{account().pw_dir}/.cache/bulkhead/rootfs/{self.id_of(self.images[0])}.lock"
        os.utime(lock, (time.time() - 2 * 86400,) * 2)
        self.forget(self.images[1])
        self.run_in(self.images[1])
        unpacked = self.unpacked()
        self.assertIn(self.id_of(self.images[1]), unpacked)
        self.assertNotIn(self.id_of(self.images[0]), unpacked)

    def forget(self, image):
        as_account("podman", "unshare", "rm", "-rf",
                   f"{account().pw_dir}/.cache/bulkhead/rootfs/{self.id_of(image)}")

    def test_several_at_once_unpack_it_once(self):
        self.forget(self.images[0])
        clients = [self.world.client(MCP_BRIDGE_IMAGE=self.images[0]) for _ in range(3)]
        replies = [client.start_run("print(7)") for client in clients]
        for reply in replies:
            self.assertEqual(reply.result(patience(90))["structuredContent"]["stdout"], "7\n")
        log = "".join(self.world.log_of(client) for client in clients)
        self.assertEqual(log.count("unpacking the image"), 1, log)

    def test_a_name_that_stands_for_another_image_by_now(self):
        """The next run has the new one, without a new start."""
        name = f"localhost/bulkhead-test-{os.getpid()}-moved"
        as_account("podman", "tag", self.images[0], name)
        try:
            client = self.run_in(name)
            as_account("podman", "tag", self.images[1], name)
            self.forget(self.images[1])
            self.run_in(name, client)
            self.assertIn(self.id_of(self.images[1]), self.unpacked())
        finally:
            as_account("podman", "untag", name, name)

    def test_its_files_are_those_of_the_containers_root(self):
        client = self.world.client()
        answer = client.run("import os; print({(os.lstat(p).st_uid, os.lstat(p).st_gid) for p in ('/', '/usr', "
                            "'/usr/bin/python3')}, os.getgroups())", wait=patience(90))
        self.assertEqual(answer["stdout"], "{(0, 0)} []\n")


class Unusable(unittest.TestCase):
    """What can't work says what to do."""

    def complaint(self, **variables):
        world = World(**{**OCI, **variables})
        try:
            done = world.command("run", "-", input=b"print(1)", seconds=90)
            self.assertEqual(done.returncode, 125, done)
            self.assertEqual([each for each in glob.glob(f"{instances_dir()}/*") if bundles_of(
                os.path.basename(each)) and not guests_of(os.path.basename(each))], [])
            return done.stderr.decode()
        finally:
            world.close()

    def test_no_such_runtime(self):
        message = self.complaint(MCP_BRIDGE_OCI_RUNTIME="/nonexistent/crun")
        self.assertIn("/nonexistent/crun", message)
        self.assertIn("MCP_BRIDGE_OCI_RUNTIME", message)

    def test_a_runtime_that_is_none(self):
        message = self.complaint(MCP_BRIDGE_OCI_RUNTIME="/bin/false")
        self.assertIn("start a sandbox: false exited with 1", message)
