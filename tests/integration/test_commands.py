"""The command line: run, servers, doctor, image, --help, --version."""

import glob
import json
import os
import signal
import subprocess
import time
import unittest

from host import instances_dir, patience
from instances import guests_of, instance_of
from world import BINARY, World, constraint_rows


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World(lambda world: {"stub": world.recorder("calls"), "files-2": world.recorder("calls"),
                                         "denied": world.recorder("calls")}, {"deny": ["denied", "stub/fail"]})

    @classmethod
    def tearDownClass(cls):
        cls.world.close()

    def write(self, name, text):
        path = self.world.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_text(self, text, *arguments, **options):
        return self.world.command("run", self.write("script.py", text), *arguments, **options)


class Running(CommandTest):
    def test_output_and_status(self):
        done = self.run_text("import sys\nprint('out')\nprint('err', file=sys.stderr)")
        self.assertEqual((done.returncode, done.stdout), (0, b"out\n"))
        self.assertIn(b"err\n", done.stderr)

    def test_the_status_is_the_codes_own(self):
        for text, status in (("import sys; sys.exit(3)", 3), ("1/0", 1), ("import os; os._exit(42)", 42),
                             ("raise SystemExit", 0)):
            with self.subTest(text):
                self.assertEqual(self.run_text(text).returncode, status)

    def test_a_traceback_comes_once(self):
        done = self.run_text("def f(): raise ValueError('of mine')\nf()")
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.count(b"ValueError: of mine"), 1)
        self.assertNotIn(b"/ipc/", done.stderr)

    def test_timeout(self):
        done = self.run_text("print('begun', flush=True)\nwhile True: pass", "--timeout", "1.5")
        self.assertEqual((done.returncode, done.stdout), (124, b"begun\n"))
        self.assertIn(b"timeout", done.stderr)
        self.assertIn(b"1.5 s", done.stderr)

    def test_out_of_memory(self):
        if not constraint_rows(self.world)["memory limit"]["held"]:
            done = self.run_text("print(1)", MCP_BRIDGE_STRICT="1")
            self.assertEqual(done.returncode, 125)
            self.assertIn(b"MCP_BRIDGE_STRICT", done.stderr)
            return
        done = self.run_text("b = bytearray(300 << 20); b[::4096] = b[::4096]", MCP_BRIDGE_MEMORY="96m")
        self.assertEqual(done.returncode, 137)
        self.assertIn(b"out_of_memory", done.stderr)

    def test_standard_input(self):
        done = self.world.command("run", "-", input=b"print(6*7)\n")
        self.assertEqual((done.returncode, done.stdout), (0, b"42\n"))
        done = self.world.command("run", "-", input=b"")
        self.assertEqual(done.returncode, 0, "nothing to run is no fault")

    def test_json(self):
        done = self.run_text("print('out')\n[1, 2]", "--json")
        answer = json.loads(done.stdout)
        answer.pop("durationMs")
        self.assertEqual(answer, {"status": "success", "exitCode": 0, "stdout": "out\n", "result": [1, 2]})
        done = self.run_text("1/0", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["error"]["type"], "ZeroDivisionError")

    def test_files_that_are_not_there(self):
        done = self.world.command("run", "/nonexistent/script.py")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"/nonexistent/script.py", done.stderr)
        done = self.world.command("run", self.world.folder)
        self.assertEqual(done.returncode, 2)

    def test_an_image_that_is_not_there(self):
        done = self.run_text("print(1)", MCP_BRIDGE_IMAGE="localhost/bulkhead-no-such-image:1")
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(b"bulkhead image build", done.stderr)

    def test_the_file_need_not_be_the_accounts(self):
        """Whoever starts the command can read it; that is enough."""
        path = self.write("private.py", "print('private')")
        os.chmod(path, 0o600)
        done = self.world.command("run", path)
        self.assertEqual((done.returncode, done.stdout), (0, b"private\n"))

    def test_servers(self):
        done = self.run_text("print(await mcp_stub.add(a=40, b=2), await mcp_files_2.echo(message='x'))",
                             "--server", "stub", "--server", "files_2")
        self.assertEqual((done.returncode, done.stdout), (0, b"42 x\n"), done.stderr)
        for name, word in (("nobody", b"nobody"), ("denied", b"denied")):
            done = self.run_text("print(1)", "--server", name)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(word, done.stderr)

    def test_ten_megabytes_arrive_whole(self):
        done = self.run_text("import os\nfor i in range(10): os.write(1, bytes([65 + i]) * 1_000_000)", seconds=120)
        self.assertEqual(done.stdout, b"".join(bytes([65 + i]) * 1_000_000 for i in range(10)))

    def test_bytes_arrive_as_they_are(self):
        done = self.run_text("import os\nos.write(1, bytes(range(256)) * 100)\nos.write(1, b'\\xc3')")
        self.assertEqual(done.stdout, bytes(range(256)) * 100 + b"\xc3")

    def test_output_comes_while_the_code_runs(self):
        process = self.world.start_command(
            "run", self.write("slow.py", "import time\nprint('first', flush=True)\ntime.sleep(5)\nprint('last')"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.assertEqual(process.stdout.readline(), b"first\n")
            first = time.monotonic()
            self.assertEqual(process.stdout.readline(), b"last\n")
            self.assertGreater(time.monotonic() - first, 3)
            self.assertEqual(process.wait(patience(20)), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_a_reader_that_is_slow_gets_everything(self):
        process = self.world.start_command(
            "run", self.write("much.py", "import os\nfor _ in range(30): os.write(1, b'm' * 1_000_000)"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            time.sleep(3)
            total = 0
            while chunk := process.stdout.read(1 << 16):
                total += len(chunk)
            self.assertEqual(total, 30_000_000)
            self.assertEqual(process.wait(patience(20)), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def test_a_reader_that_leaves(self):
        process = self.world.start_command(
            "run", self.write("endless.py", "import os\nwhile True: os.write(1, b'e' * 100_000)"), "--timeout", "4",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.read(1000)
        process.stdout.close()
        try:
            self.assertIsNotNone(process.wait(patience(40)))
        finally:
            process.kill()
            process.wait()

    def test_escape_sequences_do_not_reach_a_terminal(self):
        master, slave = os.openpty()
        process = self.world.start_command(
            "run", self.write("escapes.py", "print('\\x1b[2Jclear\\x07')\nraise ValueError('\\x1b]0;title\\x07')"),
            stdout=slave, stderr=slave)
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:
            pass  # The terminal's other end is closed.
        os.close(master)
        self.assertEqual(process.wait(patience(60)), 1)
        self.assertIn(b"clear", text)
        self.assertNotIn(b"\x1b", text)
        self.assertNotIn(b"\x07", text)

    def test_interrupting(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process = self.world.start_command(
                    "run", self.write("long.py", "import time\nprint('up', flush=True)\ntime.sleep(600)"),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    self.assertEqual(process.stdout.readline(), b"up\n")
                    instance = instance_of(process.pid)
                    self.assertTrue(guests_of(instance))
                    process.send_signal(number)
                    begun = time.monotonic()
                    self.assertEqual(process.wait(patience(20)), 130)
                    self.assertLess(time.monotonic() - begun, patience(5))
                    self.world.assert_clean(instance, alive=False)
                finally:
                    process.kill()
                    process.communicate()

    def test_settings_from_the_environment(self):
        done = self.run_text("while True: pass", MCP_BRIDGE_TIMEOUT="1")
        self.assertEqual(done.returncode, 124)


class Showing(CommandTest):
    def test_version(self):
        done = self.world.command("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout.decode(), r"^bulkhead \d+\.\d+\.\d+\n$")
        self.assertEqual(done.stderr, b"")

    def test_help(self):
        done = self.world.command("--help")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for word in (b"run", b"doctor", b"servers", b"image", b"--account", b"Examples"):
            self.assertIn(word, done.stdout)
        for command in ("run", "doctor", "servers", "image"):
            with self.subTest(command):
                done = self.world.command(command, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertIn(b"--help", done.stdout)

    def test_mistakes(self):
        for arguments in (["nonsense"], ["--nonsense"], ["run"], ["run", "-", "--timeout", "x"],
                          ["run", "-", "--timeout", "-1"], ["image"]):
            with self.subTest(arguments):
                done = self.world.command(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, b""))
                self.assertTrue(done.stderr)

    def test_a_command_that_was_likely_meant_is_named(self):
        for arguments, meant in ((["ledgr"], "ledger"), (["serv"], "serve"), (["token", "rovoke", "x", "y"], "revoke"),
                                 (["servers", "--tenant", "x", "imprt"], None), (["image", "bild"], "build"),
                                 (["conformance-serve"], None), (["frobnicate"], None)):
            with self.subTest(arguments):
                done = self.world.command(*arguments)
                said = done.stderr.decode()
                if meant:
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f'Did you mean "{meant}"?', said)
                else:
                    self.assertNotIn("Did you mean", said)

    def test_no_configuration_is_needed_to_ask(self):
        done = subprocess.run([BINARY, "--version"], env={}, capture_output=True, timeout=patience(20))
        self.assertEqual(done.returncode, 0)

    def test_servers(self):
        done = self.world.command("servers")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        for word in ("stub", "files-2", "mcp_files_2", "servers.json", 'denied by policy'):
            self.assertIn(word, text)

    def test_servers_as_json(self):
        done = self.world.command("servers", "--json")
        shown = json.loads(done.stdout)
        self.assertEqual([(s["name"], s["alias"], s["allowed"]) for s in shown["servers"]],
                         [("denied", "denied", False), ("files-2", "files_2", True), ("stub", "stub", True)])
        self.assertEqual(shown["problems"], [])
        self.assertNotIn("env", json.dumps(shown))

    def test_their_tools(self):
        done = self.world.command("servers", "--json", "--tools")
        self.assertEqual(done.returncode, 0, "what policy denies is no failure")
        tools = {s["name"]: {t["name"]: t["allowed"] for t in s.get("tools", [])}
                 for s in json.loads(done.stdout)["servers"]}
        self.assertEqual(tools["stub"], {"echo": True, "add": True, "blob": True, "slow": True, "exit": True,
                                         "fail": False})
        self.assertEqual(tools["denied"], {}, "a denied server isn't started")

    def test_no_servers(self):
        world = World({})
        try:
            done = world.command("servers")
            self.assertEqual(done.returncode, 0)
            self.assertIn("mcpServers", done.stdout.decode())
            self.assertIn(world.state, done.stdout.decode())
        finally:
            world.close()

    def test_doctor(self):
        done = self.world.command("doctor", seconds=120)
        broken = [row for row in constraint_rows(self.world).values() if not row["held"]]
        self.assertEqual(done.returncode, 1 if broken else 0, done.stdout)
        text = done.stdout.decode()
        self.assertRegex(text, r"engine +podman \d|engine +docker \d")
        self.assertRegex(text, r"held +network +asked: none")
        self.assertRegex(text, rf"{len(broken)} of \d+ constraints don't hold" if broken else
                         r"All \d+ constraints hold")

    def test_doctor_says_what_is_wrong(self):
        done = self.world.command("doctor", MCP_BRIDGE_IMAGE="localhost/bulkhead-no-such-image:1", seconds=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bulkhead image build", done.stdout.decode())
        done = self.world.command("doctor", "--json", MCP_BRIDGE_RUNTIME="/nonexistent/podman", seconds=120)
        self.assertEqual(done.returncode, 1)
        shown = json.loads(done.stdout)
        self.assertEqual((shown["ok"], shown["error"]["code"]), (False, "unavailable"))

    def test_stdout_holds_what_was_asked_for_alone(self):
        """Logs go to stderr, at every level."""
        done = self.world.command("servers", "--json", MCP_BRIDGE_LOG_LEVEL="trace")
        json.loads(done.stdout)

    def test_the_image_is_current(self):
        done = self.world.command("image", "build", seconds=300)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        self.assertEqual(glob.glob(f"{instances_dir()}/image-build.*"), [], "the builder's scripts are gone")

    def test_terminals_get_a_greeting(self):
        master, slave = os.openpty()
        process = self.world.start_command(stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.close(slave)
        try:
            line = process.stderr.readline()
            while line and b"JSON-RPC" not in line:
                line = process.stderr.readline()
            self.assertIn(b"JSON-RPC", line)
            process.terminate()
            out, _ = process.communicate(timeout=patience(20))
            self.assertEqual((process.returncode, out), (0, b""))
        finally:
            process.kill()
            process.wait()
            os.close(master)


if __name__ == "__main__":
    unittest.main()
