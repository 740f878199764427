"""Taking over the servers that other programs have: by their own command lines where those run here (Claude Code,
Codex, Gemini CLI, OpenCode, from npm), else from files in their documented form (samples/)."""

import glob
import json
import os
import pty
import re
import stat
import subprocess
import unittest

from host import account, is_root, patience, read
from npm import installed
from world import BINARY, HERE, SUPPORT, World

SAMPLES = os.path.join(HERE, "samples")
TOKEN = "s3cret-value"


class ImportTest(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.home = self.folder("home")
        self.project = self.folder("project")

    def tearDown(self):
        self.world.close()

    def folder(self, name):
        path = os.path.realpath(self.world.path(name))
        os.makedirs(path, exist_ok=True)
        return path

    def write(self, path, content):
        """A file that the account may link to."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        self.world.settle()

    def run_command(self, *arguments, status=0, **more):
        more = {"HOME": self.home, "XDG_CONFIG_HOME": None, "TOKEN": TOKEN, **more}
        done = self.world.command(*arguments, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def take_over(self, host, *more, status=0, **variables):
        return self.run_command("servers", "import", host, *more, status=status, **variables)

    def servers(self, status=0, **variables):
        """What is configured now, and how each is reached."""
        shown = json.loads(self.world.command("servers", "--json", HOME=self.home, TOKEN=TOKEN, **variables).stdout)
        self.assertEqual(1 if any(each["kind"] == "error" for each in shown["problems"]) else 0, status, shown)
        self.shown = shown
        return {each["name"]: each for each in shown["servers"]}

    def reached(self):
        """Name → transport and command or address."""
        return {name: (each["transport"], each.get("command") or each.get("url"))
                for name, each in self.servers().items()}

    def disabled(self):
        return [each["name"] for each in self.shown.get("disabled", [])]

    def imported(self, name):
        return os.path.join(self.world.state, f"imported-{name}.json")


class HostsOwnCommands(ImportTest):
    """Each host's command line writes its file; the import then has the very list that the host shows."""

    @classmethod
    def setUpClass(cls):
        cls.modules = os.path.join(installed("test-hosts", os.path.join(HERE, "hosts")), "node_modules")

    def program(self, *patterns):
        """The first of these programs that runs on this machine."""
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(self.modules, pattern))):
                if os.access(path, os.X_OK) and self.host_run(path, "--version", check=False).returncode == 0:
                    return path
        raise AssertionError(f"none of {patterns} runs here")

    def host_run(self, *command, check=True):
        env = {"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8", "NO_COLOR": "1",
               "DISABLE_AUTOUPDATER": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
        done = subprocess.run(command, env=env, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=patience(120))
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}: {done.stdout} {done.stderr}")
        return done

    def test_claude_code(self):
        program = self.program("@anthropic-ai/claude-code-*/claude")

        def add(*arguments):
            self.host_run(program, "mcp", *arguments)

        add("add", "--scope", "user", "files", "-e", "KEY=literal-key", "--", "/bin/echo", "one", "two words")
        add("add", "--scope", "user", "--transport", "http", "remote", "http://127.0.0.1:9/mcp",
            "--header", "Authorization: Bearer literal-key")
        add("add-json", "--scope", "user", "odd",
            '{"type":"stdio","command":"/bin/true","args":["${NOT_SET}","${NOT_SET:-b}"],"env":{"K":"${TOKEN}"}}')
        add("add", "--scope", "local", "--transport", "sse", "events", "http://127.0.0.1:9/sse")
        add("add", "--scope", "project", "shared", "--", "./run.sh", "--now")
        listed = self.host_run(program, "mcp", "list").stdout
        shown = {}
        for line in listed.splitlines():
            found = re.match(r"^([\w-]+): (.*?)(?: \((HTTP|SSE)\))? - \W", line)
            if found:
                shown[found[1]] = ((found[3] or "stdio").lower(), found[2].split(" ")[0])
        self.assertEqual(sorted(shown), ["events", "files", "odd", "remote", "shared"], listed)
        self.assertNotIn("literal-key", self.take_over("claude-code", "--yes"))
        self.take_over("claude-code", "--project", self.project, "--yes")
        self.assertEqual(self.reached(), shown)
        servers = self.servers()
        self.assertEqual(servers["files"]["args"], ["one", "two words"])
        text = read(self.imported("claude-code"))
        self.assertIn("${TOKEN", text)
        self.assertNotIn(TOKEN, text)

    def test_codex(self):
        program = self.program(".bin/codex")
        self.host_run(program, "mcp", "add", "files", "--env", "KEY=literal-key", "--", "/bin/echo", "one", "${LITERAL}")
        self.host_run(program, "mcp", "add", "remote", "--url", "http://127.0.0.1:9/mcp",
                      "--bearer-token-env-var", "TOKEN")
        config = os.path.join(self.home, ".codex", "config.toml")
        with open(config, "a", encoding="utf-8") as file:
            file.write('\n[mcp_servers.off]\ncommand = "/bin/true"\nenabled = false\n'
                       '[mcp_servers.some]\ncommand = "/bin/true"\nenabled_tools = ["a"]\ndisabled_tools = ["b"]\n'
                       'tool_timeout_sec = 5\n')
        listed = json.loads(self.host_run(program, "mcp", "list", "--json").stdout)
        self.assertNotIn("literal-key", self.take_over("codex", "--yes"))
        shown = {each["name"]: ("http", each["transport"]["url"]) if "url" in each["transport"]
                 else ("stdio", each["transport"]["command"]) for each in listed if each["enabled"]}
        self.assertEqual(self.reached(), shown)
        self.assertEqual(self.disabled(), [each["name"] for each in listed if not each["enabled"]])
        servers = self.servers()
        self.assertEqual((servers["some"]["includeTools"], servers["some"]["excludeTools"]), (["a"], ["b"]))
        self.assertEqual(json.loads(read(self.imported("codex")))["mcpServers"]["files"]["args"],
                         ["one", "$${LITERAL}"])

    def test_gemini(self):
        program = self.program(".bin/gemini")

        def add(scope, *arguments):
            self.host_run(program, "mcp", "add", "--scope", scope, *arguments)

        add("user", "files", "/bin/echo", "one", "-e", "KEY=literal-key", "--timeout", "5000")
        add("user", "--transport", "http", "remote", "http://127.0.0.1:9/mcp", "-H", "Authorization: Bearer literal-key")
        add("project", "--transport", "sse", "events", "http://127.0.0.1:9/sse")
        done = self.host_run(program, "mcp", "list")
        shown = {found[1]: (found[3], found[2].split(" ")[0])
                 for found in re.finditer(r"^\S+ ([\w-]+): (.+) \((stdio|http|sse)\) - ", done.stdout + done.stderr, re.M)}
        self.assertEqual(sorted(shown), ["events", "files", "remote"], done.stdout + done.stderr)
        self.assertNotIn("literal-key", self.take_over("gemini", "--yes"))
        self.take_over("gemini", "--project", self.project, "--yes")
        self.assertEqual(self.reached(), shown)

    def test_opencode(self):
        program = self.program("opencode-linux-*/bin/opencode", "opencode-*/bin/opencode")
        config = os.path.join(self.home, ".config", "opencode", "opencode.json")
        self.write(config, {"$schema": "https://opencode.ai/config.json", "mcp": {
            "off": {"type": "local", "command": ["/bin/true"], "enabled": False}}})
        self.host_run(program, "mcp", "add", "files", "--env", "KEY=literal-key", "--", "/bin/echo", "one")
        self.host_run(program, "mcp", "add", "remote", "--url", "http://127.0.0.1:9/mcp")
        listed = re.sub(r"\x1b\[[0-9;]*m", "", self.host_run(program, "mcp", "list").stdout)
        shown, name = {}, ""
        for line in listed.splitlines():
            if found := re.match(r"^●\s+\S+ (\S+) ", line):
                name = found[1]
            elif name and (found := re.match(r"^│\s{4,}(\S+)", line)):
                shown[name] = found[1]
        self.assertEqual(sorted(shown), ["files", "off", "remote"], listed)
        self.assertNotIn("literal-key", self.take_over("opencode", "--yes"))
        reached = {name: where for name, (_, where) in self.reached().items()}
        self.assertEqual(self.disabled(), ["off"])
        self.assertEqual({**reached, "off": "/bin/true"}, shown)


class Samples(ImportTest):
    def test_each_sample(self):
        wanted = {
            "cursor": ({"files": ("stdio", "/bin/true"), "remote": ("http", "https://cursor.example/mcp")}, ["off"]),
            "vscode": ({"files": ("stdio", "/bin/true"), "remote": ("http", "https://vscode.example/mcp")}, []),
            "windsurf": ({"files": ("stdio", "/bin/true"), "remote": ("http", "https://windsurf.example/mcp")}, ["off"]),
            "claude-desktop": ({"files": ("stdio", "/bin/true")}, []),
            "zed": ({"files": ("stdio", "/bin/true"), "remote": ("http", "https://zed.example/mcp")}, ["off"]),
            "goose": ({"files": ("stdio", "/bin/true"), "remote": ("http", "https://goose.example/mcp")}, ["off"])}
        self.assertEqual(sorted(os.path.splitext(name)[0] for name in os.listdir(SAMPLES)), sorted(wanted))
        for host, (servers, disabled) in wanted.items():
            with self.subTest(host):
                sample = glob.glob(os.path.join(SAMPLES, host + ".*"))[0]
                text = self.take_over(host, "--file", sample, "--project", self.project, "--yes")
                self.assertNotIn("literal-token", text)
                self.assertNotIn(TOKEN, text)
                self.assertEqual(self.reached(), servers)
                self.assertEqual(self.disabled(), disabled)
                [path] = glob.glob(self.imported(host + "-*"))
                self.assertNotIn(TOKEN, read(path))
                os.unlink(path)

    def test_what_cannot_be_had_is_told(self):
        text = self.take_over("vscode", "--file", os.path.join(SAMPLES, "vscode.json"), "--project", self.project,
                              "--dry-run")
        self.assertRegex(text, r"error: asks: isn't taken over: headers.Authorization asks for \$\{input:key\}")
        text = self.take_over("goose", "--file", os.path.join(SAMPLES, "goose.yaml"), "--dry-run")
        self.assertIn("developer: isn't taken over", text)


class Asking(ImportTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.home, ".cursor", "mcp.json")
        self.write(self.file, {"mcpServers": {"files": {
            "command": "/bin/true", "args": ["--api-key=literal-token", "${env:TOKEN}"],
            "env": {"KEY": "literal-token"}}}})

    def nothing_written(self):
        self.assertEqual(glob.glob(self.imported("*")), [])

    def test_without_a_terminal(self):
        text = self.take_over("cursor", status=1)
        self.assertIn("--yes", text)
        self.nothing_written()

    def test_only_looking(self):
        text = self.take_over("cursor", "--dry-run")
        for word in ("files", "/bin/true --api-key=***", "variables: KEY", self.file, self.imported("cursor")):
            self.assertIn(word, text)
        self.assertNotIn("literal-token", text)
        self.nothing_written()

    def answer(self, text):
        main, terminal = pty.openpty()
        process = self.world.start_command("servers", "import", "cursor", stdin=terminal, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, variables={"HOME": self.home})
        os.close(terminal)
        os.write(main, text.encode())
        out, complaint = process.communicate(timeout=patience(60))
        os.close(main)
        return process.returncode, out + complaint

    def test_on_a_terminal(self):
        for text in ("n\n", "\n", "yep\n"):
            status, said = self.answer(text)
            self.assertEqual(status, 1, said)
            self.assertIn(b"[y/N]", said)
            self.nothing_written()
        status, said = self.answer("y\n")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.reached(), {"files": ("stdio", "/bin/true")})

    def test_what_is_written(self):
        self.take_over("cursor", "--yes")
        info = os.stat(self.imported("cursor"))
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_uid), (0o600, account().pw_uid))
        self.assertEqual([name for name in os.listdir(self.world.state) if not name.endswith(".json")], [])
        # A copy stays as it is.
        self.write(self.file, {"mcpServers": {}})
        self.assertEqual(list(self.servers()), ["files"])

    def test_from_standard_input(self):
        text = read(self.file).encode()
        self.take_over("cursor", "--file", "-", status=1, input=text)
        self.nothing_written()
        self.take_over("cursor", "--file", "-", "--link", "--yes", status=1, input=text)
        self.nothing_written()
        self.take_over("cursor", "--file", "-", "--yes", input=text)
        self.assertEqual(list(self.servers()), ["files"])

    def test_what_it_would_shadow(self):
        self.world.write_config("a.json", {"mcpServers": {"files": {"command": "/bin/false"}}})
        self.world.write_config("z.json", {"mcpServers": {"zed": {"command": "/bin/false"}}})
        self.write(self.file, {"mcpServers": {"files": {"command": "/bin/true"}, "zed": {"command": "/bin/true"}}})
        text = self.take_over("cursor", "--yes")
        self.assertIn(f'"files" of {self.world.state}/a.json would have no effect', text)
        self.assertIn(f"zed  (has no effect: {self.world.state}/z.json has another", text)
        self.servers()
        states = {source["file"]: {each["name"]: each["state"] for each in source["servers"]}
                  for source in self.shown["sources"]}
        self.assertEqual(states, {f"{self.world.state}/a.json": {"files": "shadowed"},
                                  self.imported("cursor"): {"files": "used", "zed": "shadowed"},
                                  f"{self.world.state}/z.json": {"zed": "used"}})
        text = self.run_command("servers")
        self.assertIn(f"files (shadowed by {self.imported('cursor')})", text)

    def test_what_is_not_there(self):
        self.assertIn("there is no", self.take_over("codex", "--yes", status=2))
        self.assertIn("keeps no definitions in projects", self.take_over("goose", "--project", self.project, status=2))
        self.assertIn("no folder", self.take_over("cursor", "--project", "/nonexistent", status=2))
        self.take_over("emacs", status=2)
        self.write(self.file, "{}")
        self.assertIn("nothing to take over", self.take_over("cursor", "--yes", status=1))
        self.nothing_written()

    def test_itself_is_left_out(self):
        self.write(self.file, {"mcpServers": {"me": {"command": BINARY}, "files": {"command": "/bin/true"}}})
        self.assertIn("me  (left out: it is this program itself)", self.take_over("cursor", "--yes"))
        self.assertEqual(list(self.servers()), ["files"])


class Links(ImportTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.home, ".cursor", "mcp.json")
        self.write(self.file, {"mcpServers": {"one": {"command": "/bin/true"}}})

    def test_a_link_is_read_anew(self):
        self.take_over("cursor", "--link", "--yes")
        self.assertEqual(list(self.servers()), ["one"])
        self.assertEqual(self.servers()["one"]["source"], self.file)
        self.write(self.file, {"mcpServers": {"two": {"url": "https://two.example"}}})
        self.assertEqual(self.reached(), {"two": ("http", "https://two.example")})
        # A broken one is its own concern: it has no policy.
        self.world.write_config("own.json", {"mcpServers": {"mine": {"command": "/bin/true"}}})
        self.write(self.file, "{ nonsense")
        self.assertEqual({name: each["allowed"] for name, each in self.servers(status=1).items()}, {"mine": True})
        self.assertEqual([(each["file"], each["kind"]) for each in self.shown["problems"]], [(self.file, "error")])
        os.unlink(self.file)
        self.assertEqual(list(self.servers(status=1)), ["mine"])
        self.assertIn(self.file, json.dumps(self.shown["problems"]))

    def test_others_must_not_write_to_it(self):
        os.chmod(self.file, 0o666)
        self.assertIn("chmod o-w", self.take_over("cursor", "--link", "--yes", status=1))
        os.chmod(self.file, 0o644)
        self.take_over("cursor", "--link", "--yes")
        os.chmod(self.file, 0o666)
        self.assertEqual(list(self.servers(status=1)), [])
        self.assertIn("chmod o-w", json.dumps(self.shown["problems"]))

    def test_what_the_account_cannot_read_is_copied(self):
        if is_root():
            os.chown(self.file, 0, 0)
            os.chmod(self.file, 0o600)
            self.assertIn("Leave out --link", self.take_over("cursor", "--link", "--yes", status=1))
            self.take_over("cursor", "--yes")
            self.assertEqual(list(self.servers()), ["one"])
        else:
            os.chmod(self.file, 0)
            self.assertIn("permission denied", self.take_over("cursor", "--yes", status=2))

    def test_a_damaged_record_closes_the_policy(self):
        self.take_over("cursor", "--link", "--yes")
        record = json.loads(read(self.imported("cursor")))
        record["import"]["host"] = "emacs"
        self.world.write_config("imported-cursor.json", record)
        self.servers(status=1)
        self.assertIn("every server is denied", json.dumps(self.shown["problems"]))


class Projects(ImportTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.project, ".mcp.json")
        self.secrets = os.path.join(self.project, ".env")
        self.write(self.file, {"mcpServers": {"one": {"command": "./run.sh"}}})

    def approve(self, host="claude-code", *more):
        return self.take_over(host, "--project", self.project, "--link", "--yes", *more)

    def assert_withdrawn(self, word):
        self.assertEqual(list(self.servers(status=1)), [])
        self.assertIn(word, json.dumps(self.shown["problems"]))
        self.assertIn(f"--project {self.project}", json.dumps(self.shown["problems"]))

    def test_an_approval_is_of_a_content(self):
        self.assertIn("you approve exactly this content", self.approve())
        self.assertEqual(list(self.servers()), ["one"])
        content = read(self.file)
        self.write(self.file, content + "\n")
        self.assert_withdrawn("has changed since it was approved")
        self.write(self.file, content)
        self.assertEqual(list(self.servers()), ["one"])
        self.write(self.file, {"mcpServers": {"evil": {"command": "/bin/true"}}})
        self.assert_withdrawn("has changed since it was approved")
        self.approve()
        self.assertEqual(list(self.servers()), ["evil"])
        os.unlink(self.file)
        self.assertEqual(list(self.servers(status=1)), [])

    def test_an_approval_lies_where_guests_cannot_write(self):
        self.approve()
        [path] = glob.glob(self.imported("claude-code-project-*"))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertNotIn("user_tools", path)

    def test_what_others_own_is_bound_by_its_content(self):
        if is_root():
            os.chown(self.file, 65534, 65534)
        os.chmod(self.file, 0o666)
        self.approve()
        self.assertEqual(list(self.servers()), ["one"])

    def test_what_an_entry_refers_to_is_approved_too(self):
        self.write(self.secrets, "KEY=one\n")
        self.write(os.path.join(self.project, ".vscode", "mcp.json"), {"servers": {
            "one": {"type": "stdio", "command": "/bin/true", "envFile": "${workspaceFolder}/.env"}}})
        for how in ("--link", "--copy"):
            with self.subTest(how):
                self.write(self.secrets, "KEY=one\n")
                self.take_over("vscode", "--project", self.project, how, "--yes")
                self.assertEqual(list(self.servers()), ["one"])
                self.write(self.secrets, "LD_PRELOAD=/tmp/evil.so\n")
                self.assertEqual(list(self.servers(status=1)), [])
                self.assertIn("has changed since it was approved", json.dumps(self.shown["problems"]))

    def test_what_the_host_forbids_is_forbidden_here(self):
        self.write(self.file, {"mcpServers": {"calls": self.world.recorder("calls")}})
        self.write(os.path.join(self.project, ".claude", "settings.json"),
                   {"permissions": {"deny": ["mcp__calls__fail"]}})
        self.approve()
        self.assertEqual(self.servers()["calls"]["excludeTools"], ["fail"])
        code = b"""
from mcp.runtime import list_tools
print(sorted(tool['name'] for tool in await list_tools('calls')))
try:
    print(await mcp_servers['calls'].fail())
except Exception as refused:
    print(refused)
"""
        done = self.world.command("run", "-", "--server", "calls", input=code, seconds=120, HOME=self.home)
        self.assertIn(b"excludeTools", done.stdout, done.stderr)
        self.assertNotIn(b"'fail'", done.stdout.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
