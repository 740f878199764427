"""Configuration that can't be read, understood or trusted denies everything, and says why."""

import json
import os
import signal
import subprocess
import time
import unittest

from host import account, as_account, is_root, link, patience, wait_until
from instances import instance_of
from world import BINARY, World


class ConfigurationTest(unittest.TestCase):
    def setUp(self):
        self.world = World(lambda world: {"stub": world.recorder("calls")})

    def tearDown(self):
        self.world.close()

    def put(self, name, content, mode=0o644):
        """A file of the state folder that belongs to the account."""
        path = os.path.join(self.world.state, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        self.own(path)
        os.chmod(path, mode)
        return path

    def own(self, path):
        if is_root():
            os.chown(path, account().pw_uid, account().pw_gid, follow_symlinks=False)

    def servers(self, **variables):
        done = self.world.command("servers", "--json", **variables)
        return done.returncode, json.loads(done.stdout)

    def assert_closed(self, *words, **variables):
        status, shown = self.servers(**variables)
        self.assertEqual(status, 1)
        self.assertEqual([s["allowed"] for s in shown["servers"]], [False], shown)
        text = json.dumps(shown["problems"])
        for word in (*words, "every server is denied until that is repaired"):
            self.assertIn(word, text)

    def assert_open(self, **variables):
        status, shown = self.servers(**variables)
        self.assertEqual((status, [s["allowed"] for s in shown["servers"]]), (0, [True]), shown)


class Unreadable(ConfigurationTest):
    def test_every_answer_says_why(self):
        path = self.put("policy.json", "{'policy': {'deny': ['*']}}")
        client = self.world.client()
        answer = client.start_run("print(1)", ["stub"]).message(patience(60))
        self.assertIn(path, json.dumps(answer))
        guide = client.request("resources/read", {"uri": "bulkhead://capabilities"}).message(patience(60))
        self.assertIn(path, json.dumps(guide))
        self.assertEqual(self.world.log_of(client).count("policy.json"), 1)
        done = self.world.command("run", "-", "--server", "stub", input=b"print(1)")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(path.encode(), done.stderr)
        text = self.world.command("servers").stdout.decode()
        self.assertEqual(text.count("policy.json"), 1)
        self.assertIn("denied", text)
        done = self.world.command("servers", "--tools")
        self.assertEqual((done.stdout + done.stderr).count(b"policy.json"), 1)
        done = self.world.command("doctor", seconds=120)
        self.assertEqual((done.stdout + done.stderr).count(b"policy.json"), 1)

    def test_names(self):
        self.assert_open()
        self.put("policy.JSON", '{"policy": {"deny": ["stub"]}}')
        status, shown = self.servers()
        self.assertEqual((status, shown["servers"][0]["allowed"]), (0, False))
        self.assertIn("stub", shown["servers"][0]["deniedBy"])

    def test_what_is_no_file(self):
        path = os.path.join(self.world.state, "policy.json")
        for make, word in ((lambda: os.mkfifo(path), "no regular file"), (lambda: os.mkdir(path), "no regular file"),
                           (lambda: os.symlink("policy.json", path), "circle"),
                           (lambda: os.symlink("/dev/zero", path), "no regular file"),
                           (lambda: os.symlink("nowhere", path), "nowhere")):
            with self.subTest(word):
                make()
                self.assert_closed("policy.json", word)
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        self.assert_open()

    def test_contents(self):
        for content in (b"", b"[]", b" " * (5 << 20), '{"policy": {"deny": []}}'.encode("utf-16"),
                        b'{"Policy": {}}', b'{"polcy": {}}', b'{"policy": {}, "policy": {}}',
                        b'{"policy": {"deny": ["\xe9"]}}', b'{"policy": {"deny": "x"}}'):
            with self.subTest(content[:30]):
                self.put("policy.json", content)
                self.assert_closed("policy.json")
        self.put("policy.json", '{"p\\u006flicy": {"deny": ["other/*"]}}')
        status, shown = self.servers()
        # There is no such server, and what was to be denied is open.
        self.assertEqual((status, shown["servers"][0]["allowed"]), (1, True))
        self.assertEqual([each["kind"] for each in shown["problems"]], ["error"])

    def test_no_permission(self):
        self.put("policy.json", "{}", mode=0)
        self.assert_closed("policy.json", "permission denied", "chown")

    def test_one_more_file(self):
        self.assert_closed("/nonexistent/servers.json", MCP_SERVERS_CONFIG="/nonexistent/servers.json")
        self.assert_closed("no regular file", MCP_SERVERS_CONFIG=self.world.folder)

    def test_a_state_folder_that_is_none(self):
        for target in ("/nonexistent/folder", "/etc/passwd"):
            link = self.world.path("link")
            os.symlink(target, link)
            status, shown = self.servers(MCP_BRIDGE_STATE_DIR=link)
            os.unlink(link)
            self.assertEqual(status, 1)
            self.assertIn("every server is denied", json.dumps(shown["problems"]))


class Untrusted(ConfigurationTest):
    def test_who_may_write(self):
        path = self.put("policy.json", '{"mcpServers": {}}')
        self.assert_open()
        os.chmod(path, 0o666)
        self.assert_closed("policy.json", "chmod o-w")
        os.chmod(path, 0o644)
        os.chmod(self.world.state, 0o777)
        self.assert_closed_without_servers("chmod o-w")
        os.chmod(self.world.state, 0o755)
        self.assert_open()
        if is_root():
            os.chown(path, 65534, 65534)
            self.assert_closed("policy.json", "uid 65534")

    def assert_closed_without_servers(self, word, **variables):
        status, shown = self.servers(**variables)
        self.assertEqual((status, shown["servers"]), (1, []))
        self.assertIn(word, json.dumps(shown["problems"]))

    def test_what_guests_can_write(self):
        written = self.world.command("run", "-", input=b"""
import json
with open('/projects/planted.json', 'w') as file:
    json.dump({'mcpServers': {'planted': {'command': '/bin/true'}}}, file)
""")
        self.assertEqual(written.returncode, 0, written.stderr)
        planted = os.path.join(self.world.state, "user_tools", "planted.json")
        self.assert_closed("code in the sandbox can write to", MCP_SERVERS_CONFIG=planted)
        # Also once it is the account's own.
        own = os.path.join(self.world.state, "user_tools", "own.json")
        with open(own, "w", encoding="utf-8") as file:
            file.write("{}")
        self.own(own)
        self.assert_closed("code in the sandbox can write to", MCP_SERVERS_CONFIG=own)
        link = os.path.join(self.world.state, "link.json")
        os.symlink(own, link)
        self.assert_closed("code in the sandbox can write to")
        os.unlink(link)
        as_account("podman", "unshare", "rm", planted, own)
        self.assert_open()


class Said(ConfigurationTest):
    def test_remarks_are_no_errors(self):
        self.world.write_config("more.json", {
            "colour": "red", "policy": {"allow": ["stub", "stubb/*"]},
            "mcpServers": {"off": {"command": "x", "disabled": True}}})
        done = self.world.command("servers")
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, text)
        for word in ("off  (disabled)", '"colour"', 'did you mean "stub"?', "remark: "):
            self.assertIn(word, text)

    def test_denials_of_nothing_are_errors(self):
        """What was meant to be shut is open."""
        self.world.write_config("more.json", {"policy": {"deny": ["stubb/*"]}})
        done = self.world.command("servers")
        self.assertEqual(done.returncode, 1)
        self.assertIn('did you mean "stub"?', done.stdout.decode())

    def test_misspelled_keys_are_errors(self):
        self.world.write_config("more.json", {"mcpServers": {"x": {"command": "y", "arg": []}}})
        done = self.world.command("servers")
        self.assertEqual(done.returncode, 1)
        self.assertIn('did you mean "args"?', done.stdout.decode())

    def test_variables(self):
        variables = {"MCP_BRIDGE_TIMEOUTS": "1", "MCP_BRIDGE_TIMEOUT": None, "MCP_BRIDGE_MAX_TIMEOUT": "9"}
        done = self.world.command("run", "-", input=b"", **variables)
        self.assertIn(b"MCP_BRIDGE_TIMEOUTS; did you mean MCP_BRIDGE_TIMEOUT?", done.stderr)
        self.assertIn(b"runs get 9 s", done.stderr)
        shown = json.loads(self.world.command("doctor", "--json", seconds=120, **variables).stdout)
        self.assertEqual(len(shown["settings"]), 2)

    def test_arguments_without_secrets(self):
        self.world.write_config("servers.json", {"mcpServers": {"stub": {
            "command": "/bin/true", "args": ["--api-key=hidden", "--token", "hidden", "${SHOWN}", "\u202ex\u009b"]}}})
        for arguments in (("servers",), ("servers", "--json")):
            done = self.world.command(*arguments, SHOWN="hidden")
            text = done.stdout.decode()
            self.assertNotIn("hidden", text)
            self.assertIn("--api-key=***", text)
            self.assertIn("${SHOWN}", text)
            self.assertNotIn("\u202e", text)
            self.assertNotIn("\u009b", text)
        self.assertEqual(json.loads(text)["servers"][0]["args"][-1], "\u202ex\u009b")


class Ending(ConfigurationTest):
    def test_timeouts(self):
        for value in ("abc", "nan", "inf", "1e308", "-1", "0", "86401", ""):
            with self.subTest(value):
                done = self.world.command("run", "-", "--timeout", value)
                self.assertEqual((done.returncode, done.stdout), (2, b""))
                self.assertIn(b"from 0.001 to 86400", done.stderr)

    def test_servers_by_name(self):
        done = self.world.command("run", "-", "--server", "stubb")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b'did you mean "stub"?', done.stderr)

    def test_without_descriptors(self):
        for most in (4, 6, 8, 10, 12):
            with self.subTest(most):
                done = subprocess.run(["prlimit", f"--nofile={most}", BINARY, "run", "/dev/null"], cwd="/",
                                      env=self.world.environment(), capture_output=True, timeout=patience(60))
                self.assertGreater(done.returncode, 0, done.stderr)
                self.assertIn(b"open files", done.stderr)

    def test_a_full_disk(self):
        for arguments in (["--version"], ["--help"], ["servers"], ["servers", "--json"], ["run", "-"],
                          ["run", "--json", "-"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                process = self.world.start_command(*arguments, stdin=subprocess.PIPE, stdout=full,
                                                   stderr=subprocess.PIPE)
                _, complaint = process.communicate(b"print(1)", timeout=patience(60))
                self.assertEqual(process.returncode, 1)
                self.assertIn(b"No space left on device", complaint)

    def test_interrupting(self):
        self.world.write_config("servers.json", {"mcpServers": {
            "never": {"command": "/bin/sleep", "args": ["100"]}}})
        for arguments in (["servers", "--tools"], ["doctor"]):
            with self.subTest(arguments):
                process = self.world.start_command(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                wait_until(lambda: instance_of(process.pid), 20, "it has started")
                time.sleep(0.1)
                process.send_signal(signal.SIGINT)
                begun = time.monotonic()
                _, complaint = process.communicate(timeout=patience(20))
                self.assertEqual(process.returncode, 130, complaint)
                self.assertIn(b"interrupted", complaint)
                self.assertLess(time.monotonic() - begun, patience(1.8))

    def test_an_interrupted_run_says_so(self):
        process = self.world.start_command("run", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE)
        process.stdin.write(b"import time\nprint('up', flush=True)\ntime.sleep(600)")
        process.stdin.close()
        self.assertEqual(process.stdout.readline(), b"up\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(patience(20)), 130)
        text = process.stderr.read()
        self.assertIn(b"you interrupted the run", text)
        self.assertNotIn(b"client", text)
        process.stdout.close()
        process.stderr.close()

    def test_a_sweep_only_sweeps(self):
        done = self.world.command("doctor", "--sweep")
        self.assertEqual((done.returncode, done.stdout.count(b"\n")), (0, 1), done.stderr)
        self.assertTrue(done.stdout.startswith(b"Swept: "))
        shown = json.loads(self.world.command("doctor", "--sweep", "--json").stdout)
        self.assertEqual(sorted(shown), ["ok", "swept"])

    def test_what_is_no_engine(self):
        done = self.world.command("run", "-", input=b"", MCP_BRIDGE_RUNTIME="/bin/echo")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"MCP_BRIDGE_RUNTIME", done.stderr)
        self.assertNotIn(b"usermod", done.stderr)

    def test_help_of_a_command_is_its_own(self):
        for command in ("run", "doctor", "servers", "image"):
            self.assertNotIn(b"Examples", self.world.command(command, "--help").stdout)

    def test_what_is_typed_does_not_drive_the_terminal(self):
        done = self.world.command("no\u202e\x1b[2J\u009b")
        self.assertEqual(done.returncode, 2)
        for character in ("\u202e", "\x1b", "\u009b"):
            self.assertNotIn(character.encode(), done.stderr)


if __name__ == "__main__":
    unittest.main()
