"""gVisor (runsc) as the OCI runtime of rootless podman: runs, tool calls, endings, and what doctor says of it. Without
runsc these tests fail: deploy/setup.sh --tests installs it."""

import json
import shutil
import unittest

from host import SYSTEM_PATH, patience, wait_until
from instances import every_process
from stdio_client import command_line
from world import BulkheadTest

GVISOR = {"MCP_BRIDGE_OCI_RUNTIME": "runsc"}
# What gVisor can't hold without root, or has no notion of.
LIMITS = {"memory limit", "swap", "pids limit"}
MOUNTS = {"/tmp", "/workspace", "/dev/shm"}


def need_runsc():
    if not shutil.which("runsc", path=SYSTEM_PATH):
        raise AssertionError("runsc isn't installed; run: deploy/setup.sh --tests, or: apt-get install runsc")


def sandboxes():
    """gVisor's own processes, of all instances: one in which a guest runs, and one that serves its files."""
    return {pid for pid in every_process()
            if (command_line(pid) or [""])[0] in ("runsc-sandbox", "runsc-gofer")}


class GVisorTest(BulkheadTest):
    variables = GVISOR

    @classmethod
    def setUpClass(cls):
        need_runsc()
        super().setUpClass()


class Runs(GVisorTest):
    def servers(world):
        return {"recorder": world.recorder("calls.jsonl")}

    def test_the_kernel_is_gvisors(self):
        answer = self.run_well("""
            import os, sys
            print(open("/proc/version").read(), os.getuid())
            print("to stderr", file=sys.stderr)
            """)
        self.assertIn("Linux version 4.4.0", answer["stdout"])
        self.assertTrue(answer["stdout"].strip().endswith("65534"), answer)
        self.assertEqual(answer["stderr"], "to stderr\n")
        self.assert_nothing_left()

    def test_a_tool_call(self):
        answer = self.run_well("""
            answer = await mcp_recorder.echo(message="through gVisor")
            print(answer)
            """, ["recorder"])
        self.assertIn("through gVisor", answer["stdout"])
        self.assertEqual(len(self.world.recorded("calls.jsonl")), 1)

    def test_an_error_is_told(self):
        answer = self.run_code("raise ValueError('no')")
        self.assertEqual(answer["status"], "error", answer)
        self.assertIn("ValueError: no", answer["stderr"])

    def test_projects_are_kept(self):
        self.run_well("open('/projects/note', 'w').write('kept')")
        self.assertEqual(self.run_well("print(open('/projects/note').read())")["stdout"], "kept\n")

    def test_no_network_and_no_other_sockets(self):
        answer = self.run_well("""
            import socket
            for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_NETLINK, socket.SOCK_RAW)):
                try:
                    with socket.socket(family, kind) as s:
                        s.settimeout(5)
                        s.connect(("1.1.1.1", 53))
                    print("connected")
                except OSError:
                    print("refused")
            """)
        self.assertEqual(answer["stdout"], "refused\nrefused\n")


class Endings(GVisorTest):
    def test_a_timeout_leaves_nothing(self):
        before = sandboxes()
        answer = self.run_code("import time\nprint('up', flush=True)\ntime.sleep(600)", timeout=5)
        self.assertEqual((answer["status"], answer["stdout"]), ("timeout", "up\n"), answer)
        self.assert_nothing_left()
        wait_until(lambda: not sandboxes() - before, 10, "gVisor's processes are gone")
        self.assert_still_serves()

    def test_a_cancelled_run_leaves_nothing(self):
        before = sandboxes()
        reply = self.start("import time; time.sleep(600)")
        wait_until(lambda: sandboxes() - before, 30, "gVisor runs")
        self.client.cancel(reply)
        self.assert_nothing_left()
        wait_until(lambda: not sandboxes() - before, 10, "gVisor's processes are gone")


class Doctor(GVisorTest):
    def test_it_says_what_does_not_hold_and_why(self):
        done = self.world.command("doctor", "--json", seconds=120)
        report = json.loads(done.stdout)
        runtime = report["runtime"]
        self.assertEqual((runtime["driver"], runtime["ociRuntime"]), ("cli", "runsc"))
        rows = {row["name"]: row for row in report["constraints"]}
        broken = {name for name, row in rows.items() if not row["held"]}
        self.assertLessEqual(LIMITS, broken)
        self.assertLessEqual(broken, LIMITS | MOUNTS, rows)
        for name, held in runtime["expected"].items():
            self.assertEqual(rows[name]["held"], held, rows[name])
        for name in broken:
            self.assertIn("gVisor", rows[name]["remedy"])
            self.assertIn("crun or runc", rows[name]["remedy"])
        self.assertEqual((report["ok"], done.returncode), (False, 1))

    def test_strict_refuses_it(self):
        strict = self.world.client(MCP_BRIDGE_STRICT="1")
        answer = strict.run("print(1)", wait=patience(90))
        self.assertEqual(answer["status"], "unavailable", answer)
        self.assertIn("gVisor", answer["error"]["message"])
        self.assertEqual(strict.close(patience(20)), 0)

    def test_other_drivers_say_that_they_can_not_start_it(self):
        for setting in ({"MCP_BRIDGE_DRIVER": "rest"}, {"MCP_BRIDGE_RUNTIME": "oci"}):
            with self.subTest(setting):
                done = self.world.command("doctor", "--json", seconds=120, **setting)
                self.assertEqual(done.returncode, 1)
                message = json.loads(done.stdout)["error"]["message"]
                self.assertIn("podman's command line only", message)
                self.assertIn(next(iter(setting)), message)


if __name__ == "__main__":
    unittest.main()
