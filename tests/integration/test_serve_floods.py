"""One tenant of `bulkhead serve` does all it can to be in another's way, within what it is allowed and beyond. All the
while the other's small calls succeed, and afterwards both are served."""

import contextlib
import json
import socket
import statistics
import threading
import time

from http_server import BOTH, MODERN, rpc
from host import patience, wait_until
from stdio_client import open_descriptors, resident_kib
from test_serve import ServeTest, structured
from world import LONG

# No rate stands in the attacker's way: what keeps tenants apart must do without.
OPEN_GATES = "[tenants.{}.limits]\nrequests_per_second = 100000\nburst = 100000\n"
MEBIBYTE = 1 << 20
# Half of the process's memory budget is one tenant's; as much again for copies on their way, and the program.
MOST_MEMORY = 384 * MEBIBYTE
LARGEST_BODY = 16 * MEBIBYTE


def head(token, length, method="tools/list", **more):
    fields = {"Host": "localhost", "Authorization": f"Bearer {token}", "Content-Type": "application/json",
              "Accept": BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": method,
              "Content-Length": str(length), **more}
    return ("POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            + "\r\n").encode()


def modern(method, params=None, padding=0):
    """The body of a request, with so many bytes that say nothing."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    return json.dumps(rpc(1, method, {**(params or {}), "_meta": {**meta, "padding": "x" * padding}})).encode()


class Attack:
    """Work done over and over on threads until it is told to stop; what it raises because it was refused counts for
    nothing, as attackers don't mind."""

    def __init__(self, work, threads=4):
        self.rounds = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._go_on, args=(work,), daemon=True) for _ in range(threads)]

    def _go_on(self, work):
        while not self._stop.is_set():
            with contextlib.suppress(OSError, AssertionError, ValueError):
                work()
            self.rounds += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        wait_until(lambda: self.rounds >= len(self._threads), 60, "the attack is under way")
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(patience(60))


class FloodTest(ServeTest):
    TENANTS = {name: OPEN_GATES.format(name) for name in ("ann", "bob")}
    MORE = "concurrent_runs = 4\n"

    def setUp(self):
        super().setUp()
        self.open = []
        self.addCleanup(self.let_go)
        self.server_of("ann")
        self.assert_served(self.bob)
        self.assert_served(self.ann)

    def server_of(self, name):
        self.give_server(name, "mine", self.world.odd_server())
        client = self.server.of(name)
        wait_until(lambda: structured(client.run_modern("print(await mcp_mine.echo(message='up'))", servers=["mine"]))
                   .get("stdout") == "up\n", 60, "the changed configuration is noticed")

    def let_go(self):
        while self.open:
            self.open.pop().close()

    def connect(self, data=b""):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=patience(30))
        self.open.append(connection)
        with contextlib.suppress(OSError):  # it may have been turned away already
            connection.sendall(data)
        return connection

    def assert_served(self, client):
        """A request that runs nothing, a run, and one that calls a server, as often as it takes to see that none fails."""
        answer = client.ask_modern(1, "tools/list")
        self.assertEqual(answer.status, 200, answer.text())
        answer = client.run_modern("print('small')")
        self.assertEqual(answer.status, 200)
        self.assertEqual(structured(answer).get("stdout"), "small\n")

    def assert_ann_served(self):
        for _ in range(3):
            self.assert_served(self.ann)
        answer = structured(self.ann.run_modern("print(len(await mcp_mine.blob(size=100000)))", servers=["mine"]))
        self.assertEqual(answer.get("stdout"), "100000\n", answer)

    def assert_both_served_after(self):
        """The attack over, its author has all its rights back."""
        self.let_go()
        for client in (self.ann, self.bob):
            wait_until(lambda: client.ask_modern(1, "tools/list").status == 200, 60, "it is served again")
            self.assert_served(client)


class Connections(FloodTest):
    def test_bodies_that_never_come_whole(self):
        for _ in range(600):
            self.connect(head(self.bob.token, LARGEST_BODY) + b'{"jsonrpc":"2.0",')
        self.assert_ann_served()
        self.assert_both_served_after()

    def test_streams_that_stay_open(self):
        sessions = [self.bob.open_session() for _ in range(60)]
        for session in sessions:
            stream = session.read()
            self.assertIn(stream.status, (200, 429))
            self.open.append(stream)
        body = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        for _ in range(300):
            self.connect(head(self.bob.token, len(body), "subscriptions/listen") + body)
        self.assert_ann_served()
        self.assert_both_served_after()

    def test_runs_whose_answers_nobody_waits_for(self):
        """Each would hold a connection until it has run; all but a few are refused at once."""
        body = modern("tools/call", {"name": "run_python", "arguments": {"code": "import time; time.sleep(100)"}})
        for _ in range(300):
            self.connect(head(self.bob.token, len(body), "tools/call", **{"Mcp-Name": "run_python"}) + body)
        self.assert_ann_served()
        self.let_go()
        wait_until(lambda: not self.guests(), 60, "what nobody waits for is ended")
        self.assert_both_served_after()

    def test_sessions_without_end(self):
        mine = self.ann.open_session()
        ids = {self.bob.open_session().headers["Mcp-Session-Id"] for _ in range(200)}
        self.assertEqual(len(ids), 200)
        self.assertEqual(mine.ask(1, "ping").status, 200, "another's sessions push out none")
        self.assert_ann_served()
        self.assert_both_served_after()

    def test_clients_that_vanish_leave_nothing(self):
        """At every point of a request: nothing of it is held afterwards, and the server lives."""
        slow = modern("tools/call", {"name": "run_python", "arguments": {"code": "import time; time.sleep(100)"}})
        quick = modern("tools/list")
        whole = head(self.bob.token, len(slow), "tools/call", **{"Mcp-Name": "run_python"}) + slow
        cuts = [b"", b"POST", whole[:60], whole[:-len(slow)], whole[:-1], whole,
                head(self.bob.token, len(quick)) + quick]
        before = open_descriptors(self.server.process.pid)
        for _ in range(8):
            for data in cuts:
                connection = self.connect(data)
                self.open.remove(connection)
                connection.close()
            # With a reset, not an end.
            connection = self.connect(whole)
            self.open.remove(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        self.assert_ann_served()
        wait_until(lambda: not self.guests(), 60, "their runs are ended")
        wait_until(lambda: open_descriptors(self.server.process.pid) <= before + 4, 60, "their descriptors are closed")
        self.assert_both_served_after()


class Latency(FloodTest):
    ROUNDS = 40
    # The flood's own client wants the processors, too.
    MOST_SLOWER = 6

    def latency(self, is_enough=lambda: True):
        """Of the other's small request, as a rule."""
        times = []
        while len(times) < self.ROUNDS or not is_enough():
            begun = time.monotonic()
            self.assertEqual(self.ann.ask_modern(1, "tools/list").status, 200)
            times.append(time.monotonic() - begun)
        return statistics.median(times)

    def test_large_bodies_do_not_slow_another_s_requests(self):
        quiet = self.latency()
        body = modern("tools/list", padding=8 * MEBIBYTE)
        with Attack(lambda: self.bob.ask(message=body, headers={
                "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}).text(), threads=6) as attack:
            enough = attack.rounds + 12
            flooded = self.latency(lambda: attack.rounds >= enough)
        self.assertLess(flooded / quiet, self.MOST_SLOWER, f"{quiet:.4f} s when quiet, {flooded:.4f} s in the flood")
        self.assert_both_served_after()


class Requests(FloodTest):
    def test_small_requests_without_a_pause(self):
        body = modern("tools/list")
        request = (head(self.bob.token, len(body)) + body) * 20

        def flood():
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=patience(30)) as connection:
                connection.sendall(request)
                seen = b""
                while seen.count(b'"jsonrpc"') < 20:
                    chunk = connection.recv(1 << 16)
                    if not chunk:
                        return
                    seen += chunk
        with Attack(flood):
            self.assert_ann_served()
        self.assert_both_served_after()

    def test_bodies_as_large_as_they_may_be(self):
        body = modern("tools/list", padding=LARGEST_BODY - 1000)
        with Attack(lambda: self.bob.ask(message=body, headers={
                "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}).text(), threads=4 if LONG else 1):
            self.assert_ann_served()
        self.assertLess(resident_kib(self.server.process.pid) * 1024, MOST_MEMORY)
        self.assert_both_served_after()

    def test_bodies_that_are_dear_to_read(self):
        """As many values as a message may have, over and over."""
        body = json.dumps(rpc(1, "tools/list", {"_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
            "many": [{}] * 90_000}})).encode()
        with Attack(lambda: self.bob.ask(message=body, headers={
                "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}).text(), threads=4 if LONG else 1):
            self.assert_ann_served()
        self.assert_both_served_after()

    def test_bodies_that_hold_memory(self):
        """Many large ones at once that lack their last byte: one tenant doesn't get all of the process's memory."""
        body = modern("tools/list", padding=LARGEST_BODY - 1000)
        for _ in range(24):
            connection = self.connect()
            with contextlib.suppress(OSError):
                connection.settimeout(patience(5))
                connection.sendall(head(self.bob.token, len(body)) + body[:-1])
        self.assert_ann_served()
        large = json.dumps(rpc(2, "tools/list", {"_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
            "padding": "x" * (4 * MEBIBYTE)}})).encode()
        answer = self.ann.ask(message=large, headers={"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
        self.assertEqual(answer.status, 200, "there is room for another's large request")
        self.assertLess(resident_kib(self.server.process.pid) * 1024, MOST_MEMORY)
        self.assert_both_served_after()


class Runs(FloodTest):
    """With two places of its own for runs, and half of all."""

    TENANTS = {name: OPEN_GATES.format(name) + "concurrent_runs = 2\n" for name in ("ann", "bob")}

    def start_runs(self, code, count=4, **arguments):
        streams = [self.bob.run_modern(code, id=number, meta={"progressToken": number}, **arguments)
                   for number in range(count)]
        self.open += streams
        return streams

    def test_output_that_nobody_reads(self):
        self.start_runs("import os\nwhile True: os.write(1, b'x' * 65536)")
        time.sleep(2)
        self.assert_ann_served()
        self.assertLess(resident_kib(self.server.process.pid) * 1024, MOST_MEMORY)
        self.let_go()
        wait_until(lambda: not self.guests(), 60, "the flood is over")
        self.assert_both_served_after()

    def test_calls_without_end(self):
        self.server_of("bob")
        code = ("import asyncio\n"
                "async def call():\n    while True: await mcp_mine.echo(message='x')\n"
                "print('started', flush=True)\n"
                "await asyncio.gather(*[call() for _ in range(32)])")
        streams = self.start_runs(code, servers=["mine"])
        streams[0].next_message()
        self.assert_ann_served()
        self.let_go()
        wait_until(lambda: not self.guests(), 60, "the flood is over")
        self.assert_both_served_after()

    def test_results_that_are_not_read(self):
        self.server_of("bob")
        code = ("import asyncio, re\n"
                "tasks = [asyncio.ensure_future(mcp_mine.blob(size=15 * 1024 * 1024)) for _ in range(32)]\n"
                "await asyncio.sleep(0)\n"
                "re.match(r'(a+)+$', 'a' * 60 + 'b')")
        self.start_runs(code, servers=["mine"])
        time.sleep(3)
        self.assert_ann_served()
        self.assertLess(resident_kib(self.server.process.pid) * 1024, MOST_MEMORY + 128 * MEBIBYTE)
        self.let_go()
        wait_until(lambda: not self.guests(), 60, "the flood is over")
        self.assert_both_served_after()

    def test_processors_kept_busy(self):
        self.start_runs("import os\n[os.fork() for _ in range(4)]\nwhile True: pass")
        self.assert_ann_served()
        self.let_go()
        wait_until(lambda: not self.guests(), 60, "the flood is over")
        self.assert_both_served_after()


class Places(FloodTest):
    MORE = "concurrent_runs = 3\n"

    def test_one_place_is_left_to_others(self):
        """However many runs one has waiting, another's needn't wait for any of them to end."""
        self.open = [self.bob.run_modern("import time; time.sleep(100)", id=number, meta={"progressToken": number})
                     for number in range(8)]
        wait_until(lambda: len(self.guests()) == 2, 60, "two of them run")
        going = set(self.guests())
        self.assert_ann_served()
        self.assertEqual(going - set(self.guests()), set(), "none of them has ended for that")
        self.let_go()
        wait_until(lambda: not self.guests(), 60, "what nobody waits for is ended")
        self.assert_both_served_after()
