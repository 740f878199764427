"""`bulkhead serve`: several tenants on one server, kept apart, with real sandboxes."""

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import time
import unittest

from host import cgroups_are_v1, patience, read, wait_until
from http_server import HttpClient, TenantServer, rpc
from instances import guests_of, instances_of
from world import World

SLEEP = "import time\nprint('started', flush=True)\ntime.sleep(100)"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def structured(answer):
    return answer.result()["structuredContent"]


def wait_for_start(answer):
    message = {}
    while "started" not in message.get("params", {}).get("message", ""):
        message = answer.next_message()
        if "method" not in message:
            raise AssertionError(f"ended before it started: {message}")


class ServeTest(unittest.TestCase):
    """A server with two tenants that ends well, whatever the tests did, and leaves nothing."""

    TENANTS = {"ann": "", "bob": ""}
    MORE = ""

    def setUp(self):
        self.world = World({})
        self.server = TenantServer(self.world, self.TENANTS, self.MORE)
        self.ann = self.server.of("ann")
        self.bob = self.server.of("bob") if "bob" in self.TENANTS else None

    def tearDown(self):
        try:
            status = self.server.stop()
            self.assertEqual(status, 0, self.server.log_text()[-3000:])
            for instance in self.server.instances:
                self.world.assert_clean(instance, alive=False)
            for token in self.server.tokens.values():
                self.assertNotIn(token, self.server.log_text(), "a token in the log")
        finally:
            self.world.close()

    def guests(self):
        return [pid for instance in instances_of(self.server.process.pid) for pid in guests_of(instance)]

    def give_server(self, tenant, name, entry):
        """A file of the tenant's own, as whoever runs the server writes it."""
        self.write_private(f"tenants/{tenant}/servers.json", {"mcpServers": {name: entry}})

    def write_private(self, path, content):
        """A file of the state folder that is a tenant's."""
        tenant = path.split("/")[1]
        self.world.write_config(path, content)
        owner = os.stat(self.server.state_of(tenant))
        os.chown(f"{self.world.state}/{path}", owner.st_uid, owner.st_gid)
        os.chmod(f"{self.world.state}/{path}", 0o600)


class FirstTry(unittest.TestCase):
    def test_without_a_configuration_one_command_does(self):
        world = World(lambda world: {"recorder": world.recorder("record")})
        process = world.start_command("serve", "--listen", "127.0.0.1:0", stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        try:
            url = process.stdout.readline().strip()
            token = process.stdout.readline().strip()
            instance = instances_of(process.pid)
            client = HttpClient(int(url.split(":")[2].split("/")[0]), token)
            answer = structured(client.run_modern("print(await mcp_recorder.echo(message='hello'))",
                                                  servers=["recorder"]))
            self.assertEqual(answer["stdout"], "hello\n")
            self.assertEqual(client.ask(message=rpc(1, "ping", {}), token=False).status, 401)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(patience(40)), 0)
            words = process.stderr.read()
            self.assertIn("claude mcp add", words)
            self.assertNotIn(token, words)
            for each in instance:
                world.assert_clean(each, alive=False)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
            world.close()


class KeepingApart(ServeTest):
    def test_tokens_let_in_their_tenant_alone(self):
        self.assertEqual(HttpClient(self.server.port, "bh_" + "A" * 43).run_modern("1").status, 401)
        self.assertEqual(HttpClient(self.server.port, None).run_modern("1").status, 401)
        self.assertEqual(structured(self.ann.run_modern("print(1)"))["stdout"], "1\n")

    def test_interpreters_and_their_handles(self):
        made = structured(self.ann.run_modern("secret = 'of ann'", session="new"))
        stolen = structured(self.bob.run_modern("print(secret)", session=made["session"]))
        guessed = structured(self.bob.run_modern("print(secret)", session="0" * 32))
        self.assertEqual((stolen["status"], stolen["error"]), ("session_lost", guessed["error"]))
        mine = structured(self.ann.run_modern("print(secret)", session=made["session"]))
        self.assertEqual(mine["stdout"], "of ann\n")

    def test_http_sessions_and_their_streams(self):
        session = self.ann.open_session()
        answer = session.run(SLEEP, progress="p")
        wait_for_start(answer)
        headers = {"Mcp-Session-Id": session.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
        unknown = {**headers, "Mcp-Session-Id": "0" * 32}
        for method, message, more in (("POST", rpc(5, "ping", {}), {}), ("GET", None, {"Last-Event-ID": answer.ids[-1]}),
                                      ("DELETE", None, {}),
                                      ("POST", {"jsonrpc": "2.0", "method": "notifications/cancelled",
                                                "params": {"requestId": 1}}, {})):
            stolen = self.bob.ask(method, message, {**headers, **more})
            guessed = self.bob.ask(method, message, {**unknown, **more})
            self.assertEqual((stolen.status, stolen.text()), (404, guessed.text()), method)
        self.assertTrue(self.guests(), "the run goes on")
        self.assertEqual(session.end().status, 204)
        wait_until(lambda: not self.guests(), 30, "its own client ends it")

    def test_saved_tools_and_memory(self):
        code = ("from mcp.runtime import save_tool, save_memory\n"
                "def greet():\n    return 'hello from ann'\n"
                "save_tool(greet)\nsave_memory('note', 'of ann')\n")
        self.assertEqual(structured(self.ann.run_modern(code))["status"], "success")
        look = ("import os\nfrom mcp.runtime import list_memories, memory_exists\n"
                "import user_tools\n"
                "print(hasattr(user_tools, 'greet'), memory_exists('note'), 'ann' in str(os.listdir('/projects')))")
        self.assertEqual(structured(self.ann.run_modern(look))["stdout"].split()[:2], ["True", "True"])
        other = structured(self.bob.run_modern("import os\nfrom mcp.runtime import memory_exists\n"
                                               "print(memory_exists('note'), os.path.exists('/projects/user_tools.py'))"))
        self.assertEqual(other["stdout"].split(), ["False", "False"])

    def test_artifacts_outputs_and_the_list_of_resources(self):
        made = self.ann.run_modern("from mcp.runtime import save_file\nsave_file('a.txt', b'of ann')\nprint('x' * 200000)")
        links = [block["uri"] for block in made.result()["content"] if block["type"] == "resource_link"]
        self.assertTrue(links)
        for uri in links:
            mine = self.ann.ask_modern(2, "resources/read", {"uri": uri}, headers={"Mcp-Name": uri})
            self.assertEqual(mine.status, 200, mine.text())
            stolen = self.bob.ask_modern(3, "resources/read", {"uri": uri}, headers={"Mcp-Name": uri}).json()
            self.assertIn("error", stolen)
        listed = self.bob.ask_modern(4, "resources/list").result()["resources"]
        self.assertFalse([each for each in listed if each["uri"] in links])

    def test_folders_ledgers_and_containers(self):
        for client, word in ((self.ann, "one"), (self.bob, "two")):
            structured(client.run_modern(f"print({word!r})"))
        for name in ("ann", "bob"):
            self.assertEqual(stat.S_IMODE(os.stat(self.server.state_of(name)).st_mode), 0o700)
            self.assertEqual(wait_until(lambda: self.ledger_owners(name), 20, "the run is in the ledger"), {name})
        instances = instances_of(self.server.process.pid)
        self.assertEqual(len(instances), 2, "an engine each")

    def ledger_owners(self, tenant):
        shown = self.world.command("ledger", "--json", MCP_BRIDGE_STATE_DIR=self.server.state_of(tenant))
        return shown.returncode == 0 and {record["owner"] for record in json.loads(shown.stdout)}

    def test_each_has_its_own_server_processes(self):
        for name in ("ann", "bob"):
            self.give_server(name, "mine", self.world.recorder(f"record-{name}", WHO=name))
        for name, client in (("ann", self.ann), ("bob", self.bob)):
            def calls():
                answer = structured(client.run_modern(f"print(await mcp_mine.echo(message='for {name}'))", servers=["mine"]))
                return answer["status"] == "success"
            wait_until(calls, 30, "the changed configuration is noticed")
        for name, other in (("ann", "bob"), ("bob", "ann")):
            record = json.dumps(self.world.recorded(f"record-{name}"))
            self.assertIn(f"for {name}", record)
            self.assertNotIn(f"for {other}", record)

    def test_progress_goes_to_who_asked(self):
        answers = [client.run_modern(f"print('started {word}', flush=True)\nimport time\ntime.sleep(1)\nprint('{word}')",
                                     id=1, meta={"progressToken": 1})
                   for client, word in ((self.ann, "alpha"), (self.bob, "beta"))]
        for answer, word, other in zip(answers, ("alpha", "beta"), ("beta", "alpha")):
            text = json.dumps(answer.messages())
            self.assertIn(word, text)
            self.assertNotIn(other, text)

    def test_host_and_origin(self):
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            self.assertEqual(self.ann.ask(message=rpc(1, "ping", {}), headers=headers).status, 403)

    def test_imported_and_project_files_are_not_read(self):
        self.world.write_config("tenants/ann/imported.json", {
            "bulkhead": {"imported": {"host": "claude-code", "files": []}},
            "mcpServers": {"foreign": self.world.recorder("foreign")}})
        self.world.settle()
        os.chmod(self.server.state_of("ann"), 0o700)
        answer = structured(self.ann.run_modern("print(1)", servers=["foreign"]))
        self.assertEqual(answer["status"], "validation_error")


class Shares(ServeTest):
    """One floods; the other's is as before."""

    TENANTS = {"ann": "[tenants.ann.limits]\nconcurrent_runs = 2\nrequests_per_second = 1000\nburst = 1000\n",
               "bob": "[tenants.bob.limits]\nconcurrent_runs = 2\nrequests_per_second = 1\nburst = 3\n"}
    MORE = "concurrent_runs = 3\n[admission]\nqueue = 4\n"

    def test_a_flood_does_not_delay_another_and_is_put_off(self):
        flood = [self.ann.run_modern("import time; time.sleep(3)", id=i, meta={"progressToken": i}) for i in range(7)]
        statuses = [each.status for each in flood]
        self.assertIn(429, statuses)
        refused = flood[statuses.index(429)]
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
        self.assertEqual(refused.json()["error"]["data"]["reason"], "overloaded")
        self.assertEqual(structured(self.bob.run_modern("print('at once')"))["stdout"], "at once\n")
        going = [each for each in flood if each.status == 200]
        for each in going:
            self.assertEqual(each.result()["structuredContent"]["status"], "success")

    def test_the_processor_is_shared_by_tenants_not_by_runs(self):
        """Where limits are set in delegated cgroups (v1): each tenant's runs are in one of its own, all equal."""
        if not cgroups_are_v1():
            return
        for client, ids in ((self.ann, (1, 2)), (self.bob, (3,))):
            for each in ids:
                wait_for_start(client.run_modern(SLEEP, id=each, meta={"progressToken": each}))
        groups = {}
        for instance in instances_of(self.server.process.pid):
            for pid in guests_of(instance):
                path = next(line.split(":", 2)[2] for line in read(f"/proc/{pid}/cgroup").splitlines()
                            if "cpu" in line.split(":")[1].split(","))
                before, found, _ = path.partition(f"/{instance}/")
                self.assertTrue(found, path)
                groups.setdefault(instance, set()).add(before)
        self.assertEqual(len(groups), 2)
        self.assertEqual(len(set.union(*groups.values())), 1, "side by side")
        shares = {read(f"/sys/fs/cgroup/cpu{base}/{instance}/cpu.shares")
                  for instance, bases in groups.items() for base in bases}
        self.assertEqual(shares, {"1024\n"})

    def test_requests_that_come_too_fast(self):
        statuses = [self.bob.ask_modern(i, "tools/list").status for i in range(6)]
        self.assertEqual(statuses[:3], [200, 200, 200])
        self.assertIn(429, statuses[3:])
        self.assertEqual(self.ann.ask_modern(1, "tools/list").status, 200)
        time.sleep(1.5)
        self.assertEqual(self.bob.ask_modern(1, "tools/list").status, 200)


class Limited(ServeTest):
    TENANTS = {"ann": 'servers = ["allowed"]\n[tenants.ann.limits]\nmemory = "64m"\ntimeout = 5\nmax_timeout = 6\n',
               "bob": ""}

    def test_limits_and_rights_are_the_tenant_s(self):
        code = "print(open('/proc/self/limits').read() and 1)\nx = bytearray(200_000_000)\nprint('had')"
        self.assertNotEqual(structured(self.ann.run_modern(code))["status"], "success")
        self.assertEqual(structured(self.bob.run_modern(code))["status"], "success")
        self.assertEqual(structured(self.ann.run_modern("1", timeout=100))["status"], "validation_error")
        self.assertEqual(structured(self.ann.run_modern("import time; time.sleep(60)"))["status"], "timeout")


class Changes(ServeTest):
    def changed(self, text):
        wait_until(lambda: text in self.server.log_text(), 20, f"the log tells: {text}")

    def test_tenants_come_and_go_and_nobody_else_notices(self):
        session = self.ann.open_session()
        made = structured(self.ann.run_modern("x = 1", session="new"))
        going = session.run("import time\nprint('started', flush=True)\ntime.sleep(6)\nprint('unharmed')", progress=1)
        wait_for_start(going)
        cut = self.bob.run_modern(SLEEP, meta={"progressToken": 1})
        wait_for_start(cut)
        self.server.tenants = {"ann": "[tenants.ann.limits]\nmax_timeout = 300\n", "cid": ""}
        self.server.configure()
        self.changed("1 tenants came, 1 went, 1 changed")
        wait_until(lambda: self.bob.run_modern("1").status == 401, 20, "bob is let in no more")
        wait_until(lambda: self.server.of("cid").ask_modern(1, "tools/list").status == 200, 20, "cid is")
        self.assertEqual(structured(self.server.of("cid").run_modern("print('new')"))["stdout"], "new\n")
        self.assertEqual(structured(going)["stdout"], "started\nunharmed\n")
        self.assertEqual(structured(self.ann.run_modern("print(x)", session=made["session"]))["stdout"], "1\n")
        self.assertEqual(structured(self.ann.run_modern("print(2)", timeout=250))["stdout"], "2\n")
        self.assertEqual(session.ask(9, "ping").status, 200)
        ended = cut.messages()
        self.assertFalse(ended and "result" in ended[-1] and
                         ended[-1]["result"]["structuredContent"]["status"] == "success")

    def test_a_new_token_takes_the_old_one_s_place(self):
        old = self.server.of("ann")
        del self.server.tokens["ann"]
        self.server.configure()
        wait_until(lambda: self.server.of("ann").ask_modern(1, "tools/list").status == 200, 20, "the new one")
        self.assertEqual(old.ask_modern(1, "tools/list").status, 401)
        self.server.tokens["old ann"] = old.token  # it mustn't be in the log either

    def test_a_change_and_a_signal_at_once_end_nothing(self):
        for number in range(15):
            self.server.tenants["ann"] = f"[tenants.ann.limits]\nmax_timeout = {200 + number}\n"
            self.server.configure()
            time.sleep(number * 0.02)
            self.server.process.send_signal(signal.SIGHUP)
        time.sleep(1)
        self.assertIsNone(self.server.process.poll(), "it goes on")
        self.assertEqual(structured(self.ann.run_modern("print(1)", timeout=214))["stdout"], "1\n")

    def test_a_tenant_that_cannot_be_served_is_tried_again(self):
        folder = f"{self.world.state}/tenants/cid"
        with open(folder, "w", encoding="utf-8"):
            pass
        self.server.tenants["cid"] = ""
        self.server.configure()
        self.changed('tenant "cid" isn\'t served')
        self.assertEqual(self.server.of("cid").ask_modern(1, "tools/list").status, 403)
        os.remove(folder)
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.server.of("cid").ask_modern(1, "tools/list").status == 200, 20, "it is served")

    def test_a_broken_file_changes_nothing(self):
        self.world.write_config("bulkhead.toml", "tenants = 3 +")
        self.world.settle()
        self.changed("stays as it was")
        self.assertEqual(structured(self.ann.run_modern("print(1)"))["stdout"], "1\n")


class Operators(ServeTest):
    MORE = f'[operator]\nlisten = "127.0.0.1:{free_port()}"\n'

    def ask(self, path, port=None):
        port = port or int(self.MORE.split(":")[1].split('"')[0])
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=patience(60))) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type"), answer.read().decode()

    def test_figures_tell_what_ran(self):
        structured(self.ann.run_modern("print(1)"))
        self.assertNotEqual(structured(self.ann.run_modern("1 / 0"))["status"], "success")

        def counted():
            status, kind, text = self.ask("/metrics")
            self.assertEqual((status, kind.split(";")[0]), (200, "text/plain"))
            return ('bulkhead_runs_total{status="success",tenant="ann"} 1' in text and
                    'bulkhead_runs_total{status="error",tenant="ann"} 1' in text and text)
        text = wait_until(counted, 20, "the runs are counted")
        for family in ("bulkhead_queue_seconds_bucket", "bulkhead_boot_seconds_bucket", "bulkhead_http_requests_total",
                       "process_resident_memory_bytes"):
            self.assertIn(family, text)

    def test_health_says_all_to_operators_and_the_verdict_to_others(self):
        status, _, text = self.ask("/readyz")
        self.assertEqual(status, 200, text)
        self.assertIn("tenant ann", text)
        self.assertEqual(self.ask("/healthz")[0], 200)
        for path in ("/healthz", "/readyz"):
            status, _, text = self.ask(path, self.server.port)
            self.assertEqual((status, json.loads(text)), (200, {"status": "ok"}))

    def test_what_is_not_there(self):
        self.assertNotEqual(self.ask("/metrics", self.server.port)[0], 200)
        for path in ("/mcp", "/", "/ui/"):
            self.assertIn(self.ask(path)[0], (404, 405))


class Ends(ServeTest):
    TENANTS = {"ann": ""}

    def test_runs_come_to_their_end_before_it_stops(self):
        answer = self.ann.run_modern("import time\nprint('started', flush=True)\ntime.sleep(2)\nprint('whole')",
                                     meta={"progressToken": 1})
        wait_for_start(answer)
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(structured(answer)["stdout"], "started\nwhole\n")

    def test_killed_and_started_again_sessions_are_lost_in_words(self):
        session = self.ann.open_session()
        made = structured(self.ann.run_modern("x = 1", session="new"))
        self.ann.run_modern(SLEEP, meta={"progressToken": 1}).next_message()
        before = list(self.server.instances)
        self.server.process.kill()
        self.server.process.wait()
        self.server.process.stdout.close()
        self.server.start()
        self.ann = self.server.of("ann")
        session.server = self.ann
        self.assertEqual(session.ask(1, "ping").status, 404)
        lost = structured(self.ann.run_modern("print(x)", session=made["session"]))
        self.assertEqual(lost["status"], "session_lost")
        time.sleep(11)  # the age from which what the dead one left is swept
        self.world.command("doctor", "--sweep", seconds=120)
        for instance in before:
            self.world.assert_clean(instance, alive=False, seconds=15)
