"""MCP servers that `bulkhead serve` runs once for several tenants: real ones from npm, who may use them and who may not,
and what one tenant notices of another's use."""

import csv
import io
import json
import os
import shutil
import signal
import stat
import unittest

from host import read, wait_until
from http_server import TenantServer
from instances import instances_of, processes_of
from npm import installed
from test_serve import structured
from world import HERE, World, inside

OFTEN = "limits = { requests_per_second = 1000, burst = 1000 }\n"
ECHO = "print(await mcp_everything.echo(message='hello'))"
SLOW = """
from mcp.runtime import MCPError
try:
    await mcp_servers["everything"]["trigger-long-running-operation"](duration=60, steps=60)
except MCPError as e:
    print(e.code, "|", e)
"""
TENANTS = {"ann": 'shared = ["every*"]\n' + OFTEN,
           "bob": 'shared = ["everything", "memory"]\n' + OFTEN,
           "eve": OFTEN}


class SharedTest(unittest.TestCase):
    """A server with three tenants, of whom one may use nothing that is shared."""

    def setUp(self):
        self.world = World({})
        modules = os.path.join(installed("test-servers", os.path.join(HERE, "npm_servers")), "node_modules")
        self.lines = self.world.path("everything.lines")
        everything = os.path.join(modules, "server-everything", "dist", "index.js")
        self.everything = {"command": "/bin/bash", "args": [
            "-c", f"exec {shutil.which('node')} {everything} < <(tee -a {self.lines})"]}
        self.memory = {"command": shutil.which("node"),
                       "args": [os.path.join(modules, "server-memory", "dist", "index.js")],
                       "env": {"MEMORY_FILE_PATH": self.world.path("memory.json")}}
        os.mkdir(os.path.join(self.world.state, "shared"))
        self.share(everything=self.everything, memory=self.memory)
        self.server = TenantServer(self.world, TENANTS, '[shared]\nservers = "shared/servers.json"\n')
        self.ann, self.bob, self.eve = (self.server.of(name) for name in ("ann", "bob", "eve"))

    def tearDown(self):
        self.server.end_well()

    def share(self, policy=None, **servers):
        self.write("shared/servers.json", {"mcpServers": servers, **({"policy": policy} if policy else {})})

    def write(self, path, content):
        """A file of the state folder, as its account writes it: in one go."""
        self.world.write_config(path + ".new", content)
        new, owner = f"{self.world.state}/{path}.new", os.stat(self.world.state)
        os.chown(new, owner.st_uid, owner.st_gid)
        os.chmod(new, 0o600)
        os.rename(new, f"{self.world.state}/{path}")

    def configure(self, **tenants):
        """Other tables of tenants; None: the tenant goes."""
        self.server.tenants.update(tenants)
        self.server.tenants = {name: table for name, table in self.server.tenants.items() if table is not None}
        self.server.configure()

    def processes(self, program="server-everything"):
        return [pid for instance in self.server.instances for pid in processes_of(instance)
                if program in read(f"/proc/{pid}/cmdline") and read(f"/proc/{pid}/comm").strip() != "bash"
                and "tee" not in read(f"/proc/{pid}/comm")]

    def run_well(self, client, code, *servers):
        answer = structured(client.run_modern(code, servers=list(servers)))
        self.assertEqual(answer["status"], "success", answer)
        return answer["stdout"]

    def eventually(self, client, code, *servers, gives):
        """Runs code until it gives that: a changed configuration is noticed."""
        def given():
            answer = structured(client.run_modern(code, servers=list(servers)))
            return gives in answer.get("stdout", "") + json.dumps(answer.get("error"))
        wait_until(given, 60, f"the code gives {gives!r}")

    def begin_slow(self, *clients):
        """A call of each that takes a minute; its answers when all are at the server."""
        before = read(self.lines).count('"trigger-long-running-operation"')
        answers = [client.run_modern(SLOW, servers=["everything"], timeout=100) for client in clients]
        wait_until(lambda: read(self.lines).count('"trigger-long-running-operation"') == before + len(clients), 60,
                   "the calls are at the server")
        return answers


class OneForSeveral(SharedTest):
    def test_one_process_whose_answers_are_each_tenants(self):
        for client in (self.ann, self.bob):
            self.assertIn("hello", self.run_well(client, ECHO, "everything"))
        self.assertEqual(len(self.processes()), 1)
        self.assertEqual(len(instances_of(self.server.process.pid)), 4, "an engine each, and one for what is shared")
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.world.state}/shared").st_mode), 0o700)
        # What each did is in its own ledger.
        for name in ("ann", "bob"):
            wait_until(lambda: self.calls_of(name) == [("everything", "echo")], 20, "the call is in the ledger")
        self.assertEqual(self.calls_of("eve"), [])

    def calls_of(self, tenant):
        shown = self.world.command("ledger", "--calls", "--csv", MCP_BRIDGE_STATE_DIR=self.server.state_of(tenant))
        return [(row["server"], row["tool"]) for row in csv.DictReader(io.StringIO(shown.stdout.decode()))]

    def test_who_may_not_use_it_learns_nothing_of_it(self):
        self.run_well(self.bob, ECHO + "\nprint(await mcp_memory.read_graph())", "everything", "memory")
        refused = structured(self.eve.run_modern("print(1)", servers=["everything"]))
        unknown = structured(self.eve.run_modern("print(1)", servers=["nothing-at-all"]))
        self.assertEqual(json.dumps(refused).replace("everything", "nothing-at-all"), json.dumps(unknown))
        look = """
import json
from mcp import runtime
found = [await runtime.search_tool_docs("echo a message back", limit=50), runtime.discovered_servers(),
         await runtime.list_servers()]
for server in ("everything", "mcp_everything", "memory"):
    for ask in (lambda: runtime.query_tool_docs(server), lambda: runtime.list_tools(server),
                lambda: runtime.call_tool(server, "echo", {"message": "x"}), lambda: runtime.tool_stubs(server),
                lambda: runtime.search_tool_docs("echo", server=server)):
        try:
            found.append(await ask())
        except Exception as e:
            found.append(getattr(e, "code", type(e).__name__))
print(json.dumps(found, default=str))
"""
        found = json.loads(self.run_well(self.eve, look))
        self.assertNotIn("Echoes", json.dumps(found))
        self.assertEqual(set(found[3:]), {"not_found"}, found)
        self.assertEqual((found[1], found[2]), ([], []))
        forged = inside("hostile") + """
answers = listen()
wanted = [("everything", "echo"), ("mcp_everything", "echo"), ("memory", "read_graph"), ("ann/everything", "echo")]
for i, (server, tool) in enumerate(wanted):
    frame = call(600 + i, server, tool, message="forged")
    frame["payload"].update(owner="ann", tenant="ann", shared=True)
    forge(frame)
print(json.dumps([f and f.get("code") for f in wait_for(answers, range(600, 600 + len(wanted)))]))
"""
        codes = json.loads(self.run_well(self.eve, forged))
        self.assertEqual(set(codes), {"not_found"}, codes)
        self.assertNotIn("forged", read(self.lines))
        # Nor does one who may use another.
        self.assertNotIn("memory", self.run_well(self.ann, "from mcp import runtime\nprint(runtime.discovered_servers())"))
        self.assertEqual(structured(self.ann.run_modern("1", servers=["memory"]))["status"], "validation_error")

    def test_a_tenants_own_policy_decides(self):
        self.configure(ann=TENANTS["ann"].replace(OFTEN, 'tools = ["everything/get-*"]\n' + OFTEN))
        denied = ("from mcp.runtime import MCPError\ntry:\n    " + ECHO +
                  "\nexcept MCPError as e:\n    print(e.code)")
        self.eventually(self.ann, denied, "everything", gives="denied")
        self.assertIn("hello", self.run_well(self.bob, ECHO, "everything"))

    def test_what_it_asks_is_refused(self):
        self.assertIn("hello", self.run_well(self.ann, ECHO, "everything"))
        first = next(json.loads(line) for line in read(self.lines).splitlines() if '"initialize"' in line)
        self.assertFalse({"sampling", "elicitation", "roots"} & set(first["params"]["capabilities"]))


class Failures(SharedTest):
    def test_its_death_in_two_calls(self):
        answers = self.begin_slow(self.ann, self.bob)
        pid, = self.processes()
        os.kill(pid, signal.SIGKILL)
        for answer in answers:
            code, _, message = structured(answer)["stdout"].partition(" | ")
            self.assertEqual(code, "server_failed", message)
            self.assertIn('"everything"', message)
        for client in (self.ann, self.bob):
            self.eventually(client, ECHO, "everything", gives="hello")
        again, = self.processes()
        self.assertNotEqual(again, pid)

    def test_a_tenant_that_goes_leaves_the_others_calls_alone(self):
        of_ann, of_bob = self.begin_slow(self.ann, self.bob)
        pid, = self.processes()
        self.configure(ann=None)
        wait_until(lambda: '"notifications/cancelled"' in read(self.lines), 60, "the call of ann is given up")
        of_ann.close()
        self.assertIn("hello", self.run_well(self.bob, ECHO, "everything"))
        self.assertEqual(self.processes(), [pid])
        self.assertEqual(read(self.lines).count('"notifications/cancelled"'), 1)
        of_bob.close()


class Changes(SharedTest):
    def test_the_file_counts_without_a_restart(self):
        self.assertIn("hello", self.run_well(self.bob, ECHO, "everything"))
        first, = self.processes()
        self.share(everything=self.everything, every_new=self.everything)
        self.eventually(self.ann, ECHO.replace("everything", "every_new"), "every_new", gives="hello")
        self.assertIn(first, self.processes(), "the other isn't touched")
        self.share(every_new=self.everything)
        self.eventually(self.ann, ECHO, "everything", gives='no MCP server \\"everything\\"')
        wait_until(lambda: first not in self.processes(), 30, "nobody has it any more")
        # A rule of the file holds for all who use it.
        self.share(everything=self.everything, policy={"deny": ["everything/echo"]})
        denied = ("from mcp.runtime import MCPError\ntry:\n    " + ECHO +
                  "\nexcept MCPError as e:\n    print(e.code)")
        for client in (self.ann, self.bob):
            self.eventually(client, denied, "everything", gives="denied")

    def test_who_may_use_what_changes_without_a_restart(self):
        self.configure(eve='shared = ["everything"]\n' + OFTEN)
        self.eventually(self.eve, ECHO, "everything", gives="hello")
        self.configure(bob=OFTEN)
        self.eventually(self.bob, ECHO, "everything", gives='no MCP server \\"everything\\"')
        self.assertIn("hello", self.run_well(self.eve, ECHO, "everything"))
        self.server.more = ""
        self.configure(ann=OFTEN, eve=OFTEN)
        self.eventually(self.eve, ECHO, "everything", gives='no MCP server \\"everything\\"')
        wait_until(lambda: not self.processes(), 30, "without the file nothing is shared")

    def test_a_server_of_ones_own_counts_instead(self):
        self.assertIn("hello", self.run_well(self.bob, ECHO, "everything"))
        self.write("tenants/ann/servers.json", {"mcpServers": {"everything": self.memory}})
        self.eventually(self.ann, "print(await mcp_everything.read_graph())", "everything", gives="entities")
        self.assertIn("hello", self.run_well(self.bob, ECHO, "everything"))
        self.assertIn("is shadowed by the entry of the same name", self.server.log_text())
        self.assertEqual(len(self.processes()), 1)


if __name__ == "__main__":
    unittest.main()
