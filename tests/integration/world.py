"""What the integration tests share: the program under test, and a state folder that its account can read. Python's
standard library only.

The program is $BULKHEAD_BINARY or build/bulkhead. As root, the program becomes the account `bulkhead`, and so
do the commands that look after it here; otherwise everything is the user's own."""

import glob
import json
import os
import shutil
import stat
import subprocess
import tempfile
import textwrap
import unittest

from host import account, as_account, is_root, patience, read, wait_until
from instances import instance_of, leftovers
from stdio_client import StdioClient

HERE = os.path.dirname(os.path.abspath(__file__))
SUPPORT = os.path.join(HERE, "..", "support")
BINARY = os.path.abspath(os.environ.get("BULKHEAD_BINARY") or
                         os.path.join(HERE, "..", "..", "build", "bulkhead"))
LONG = os.environ.get("BULKHEAD_TEST_LONG") == "1"
POOLED = {"MCP_BRIDGE_POOL": None}  # settings with the pool that users have
PYTHON = "/usr/bin/python3"


def inside(name):
    """The text of a program that is meant to run in a sandbox."""
    with open(os.path.join(HERE, "inside", name + ".py"), encoding="utf-8") as file:
        return file.read()


class World:
    """A folder with a state folder in it, and the servers and commands that use it."""

    def __init__(self, servers=None, rules=None, **variables):
        self.folder = tempfile.mkdtemp(prefix="bulkhead-test-")
        self.state = os.path.join(self.folder, "state")
        self.variables = variables
        self.clients = []
        self.instances = []
        os.mkdir(self.state)
        for path in (os.path.join(SUPPORT, "recording_server.py"),
                     *glob.glob(os.path.join(HERE, "servers", "*.py"))):
            shutil.copy(path, self.folder)
        if servers is not None:
            entries = servers(self) if callable(servers) else servers
            self.write_config("servers.json", {"mcpServers": entries, **({"policy": rules} if rules else {})})
        self.settle()

    def settle(self):
        """Gives everything in the folder to the account."""
        owner = account()
        for path, folders, files in os.walk(self.folder):
            for name in [path] + [os.path.join(path, each) for each in folders + files]:
                if is_root():
                    os.chown(name, owner.pw_uid, owner.pw_gid)
                mode = os.lstat(name).st_mode
                if not stat.S_ISLNK(mode):
                    os.chmod(name, 0o755 if stat.S_ISDIR(mode) else 0o644)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_config(self, name, content):
        """Writes a file of the state folder: an object, or a text as it is."""
        with open(os.path.join(self.state, name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def recorder(self, record, **env):
        """The entry of a server that notes the tool calls it gets in a file of the folder."""
        return {"command": PYTHON, "args": [self.path("recording_server.py")],
                "env": {"RECORD": self.path(record), **env}}

    def asking_server(self):
        """The entry of a server whose tools ask the client (servers/asking_server.py)."""
        return {"command": PYTHON, "args": [self.path("asking_server.py")]}

    def odd_server(self, *behaviours, **more):
        """The entry of a server with peculiarities (servers/odd_server.py)."""
        return {"command": PYTHON, "args": [self.path("odd_server.py"), *behaviours], **more}

    def recorded(self, record):
        return [json.loads(line) for line in read(self.path(record)).splitlines()]

    def environment(self, **variables):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("MCP_") and name != "BULKHEAD_DEPTH"}
        # A timeout longer than any deadline here: what should have ended must not pass by ending later.
        # No pool: whoever looks for what a run left must not find the next run's sandbox (see POOLED).
        env.update({"MCP_BRIDGE_STATE_DIR": self.state, "MCP_BRIDGE_LOG_LEVEL": "info",
                    "MCP_BRIDGE_TIMEOUT": "110", "MCP_BRIDGE_POOL": "0"})
        env.update(self.variables)
        env.update(variables)
        return {name: value for name, value in env.items() if value is not None}

    def client(self, *arguments, **variables):
        """Starts a stdio server; its log goes to a file of the folder."""
        log = self.path(f"server-{len(self.clients)}.log")
        client = StdioClient([BINARY, *arguments], env=self.environment(**variables), stderr=log)
        self.clients.append(client)
        # The lock is taken after the account has changed; the answer to initialize comes later still.
        client.instance = instance_of(client.pid)
        assert client.instance, "the server holds no lock"
        self.instances.append(client.instance)
        return client

    def command(self, *arguments, input=None, seconds=60, **variables):
        """Runs `bulkhead …` to its end."""
        return subprocess.run([BINARY, *arguments], env=self.environment(**variables), cwd=self.folder,
                              input=input, stdin=subprocess.DEVNULL if input is None else None,
                              capture_output=True, timeout=patience(seconds))

    def start_command(self, *arguments, **options):
        variables = options.pop("variables", {})
        return subprocess.Popen([BINARY, *arguments], env=self.environment(**variables),
                                cwd=self.folder, **{"stdin": subprocess.DEVNULL, **options})

    def log_of(self, client):
        return read(client.stderr_path)

    def assert_clean(self, instance, alive, seconds=5):
        """An instance has nothing any more, at once."""
        try:
            wait_until(lambda: not leftovers(instance, alive), seconds, "nothing is left")
        except AssertionError as late:
            left = leftovers(instance, alive)
            if left:
                raise AssertionError(f"{late}; still there: " + "; ".join(left)) from None

    def close(self):
        for client in self.clients:
            client.close()
        try:
            shutil.rmtree(self.folder)
        except OSError:
            # What a guest made with a mode of its own belongs to a sub-uid.
            as_account("podman", "unshare", "rm", "-rf", self.folder, check=False)
            shutil.rmtree(self.folder, ignore_errors=True)


_rows = {}


def constraint_rows(world):
    """What doctor says of a world's settings, by name; asked once."""
    key = json.dumps(world.variables, sort_keys=True)
    if key not in _rows:
        done = world.command("doctor", "--json", seconds=120)
        _rows[key] = {row["name"]: row for row in json.loads(done.stdout)["constraints"]}
    return _rows[key]


class BulkheadTest(unittest.TestCase):
    """Tests that share one server. Subclasses say what it is configured with."""

    servers = {}
    rules = None
    variables = {}

    @classmethod
    def setUpClass(cls):
        servers = cls.servers if not callable(cls.servers) else lambda world: cls.servers(world)
        cls.world = World(servers, cls.rules, **cls.variables)
        cls.client = cls.world.client()

    @classmethod
    def tearDownClass(cls):
        """Whatever the tests did, the server ends well and leaves nothing."""
        try:
            if cls.client.process.poll() is not None:
                raise AssertionError(f"the server died: {cls.client.process.poll()}: "
                                     f"{cls.world.log_of(cls.client)[-2000:]}")
            status = cls.client.close(patience(10))
            if status != 0:
                raise AssertionError(f"the server ended with {status}")
            for instance in cls.world.instances:
                cls.world.assert_clean(instance, alive=False)
        finally:
            cls.world.close()

    def start(self, code, servers=(), timeout=None, client=None):
        return (client or self.client).start_run(textwrap.dedent(code), servers, timeout)

    def answer(self, reply, wait=90):
        """The structured content of a run that was started."""
        return reply.result(patience(wait))["structuredContent"]

    def run_code(self, code, servers=(), timeout=None, client=None):
        return self.answer(self.start(code, servers, timeout, client))

    def run_well(self, code, servers=(), timeout=None, client=None):
        answer = self.run_code(code, servers, timeout, client)
        self.assert_success(answer)
        return answer

    def assert_success(self, answer):
        self.assertEqual((answer["status"], answer.get("exitCode")), ("success", 0), answer)

    def holds(self, constraint):
        """True where the host enforces a limit, so that it can be tried. Where it can't be enforced (an account
        without delegated cgroups), that has to be said, with the remedy, and refused when asked to be strict."""
        row = constraint_rows(self.world)[constraint]
        if row["held"]:
            return True
        self.assertTrue(row["remedy"], row)
        self.assertIn("isn't enforced", self.world.log_of(self.client))
        strict = self.world.client(MCP_BRIDGE_STRICT="1")
        answer = strict.run("print(1)", wait=patience(90))
        self.assertEqual(answer["status"], "unavailable", answer)
        self.assertIn("MCP_BRIDGE_STRICT", answer["error"]["message"])
        self.assertEqual(strict.close(patience(20)), 0)
        return False

    def assert_still_serves(self, client=None):
        self.assertEqual(self.run_well("print('alive')", client=client)["stdout"], "alive\n")

    def assert_nothing_left(self, client=None):
        """No run has left anything, though the server lives on."""
        self.world.assert_clean((client or self.client).instance, alive=True)
