#!/usr/bin/env python3
"""Measures Bulkhead against plain `podman run` with the same flags, and against the floor: the same frames
through a bare attached container. All in one run, in turn, several times; prints medians and ratios.

usage: bench.py [--binary build/bulkhead] [--runs N] [--drivers] [--json]

No figure makes it fail: machines are noisy. It fails when something doesn't work."""

import argparse
import concurrent.futures
import itertools
import json
import os
import pwd
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from stdio_client import (StdioClient, children_of, command_line, resident_kib,  # noqa: E402
                          share_of_memory_kib)

CALLS = """
import time
await mcp_stub.echo(message="warm")
best = []
for _ in range(5):
    begin = time.perf_counter()
    for i in range(100):
        await mcp_stub.echo(message="hello")
    best.append((time.perf_counter() - begin) / 100)
print("ROUNDTRIP", sorted(best)[2])
import asyncio
best = []
for _ in range(3):
    begin = time.perf_counter()
    await asyncio.gather(*[mcp_stub.echo(message="hello") for _ in range(2000)])
    best.append(2000 / (time.perf_counter() - begin))
print("OVERLAPPING", sorted(best)[1])
"""


# How sandboxes can be started, by name, and the settings that choose it. The first is what the others are measured by.
DRIVERS = {"cli": {"MCP_BRIDGE_RUNTIME": "podman", "MCP_BRIDGE_DRIVER": "cli"},
           "rest": {"MCP_BRIDGE_RUNTIME": "podman", "MCP_BRIDGE_DRIVER": "rest"},
           "oci": {"MCP_BRIDGE_RUNTIME": "oci", "MCP_BRIDGE_DRIVER": ""}}
RATE_GOALS = {"rest": "goal 1.2 or more", "oci": "goal 3 or more"}
SUSTAINED_SECONDS = 20  # three times, in turn


def account():
    """The account that runs the containers: root becomes `bulkhead`."""
    return pwd.getpwnam("bulkhead") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())


def as_account(owner):
    """What subprocess needs to run something as the account, with its environment."""
    runtime = "/run/bulkhead" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "")
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "HOME": owner.pw_dir, "LANG": "C.UTF-8"}
    if runtime:
        env["XDG_RUNTIME_DIR"] = runtime
    extra = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    return {"env": env, "cwd": owner.pw_dir, **(extra if os.geteuid() == 0 else {})}


def podman_command(client):
    """The command line of the container that a run of Bulkhead really starts."""
    reply = client.start_run("import time; time.sleep(2)")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for pid in children_of(client.pid):
            words = command_line(pid)
            if words and os.path.basename(words[0]) in ("podman", "docker") and "run" in words:
                reply.result()
                return words
        time.sleep(0.01)
    raise RuntimeError("no container was started")


def adapt(words, folder, name, command):
    """The same flags with another name, id file and program."""
    result = []
    for word in words:
        if word == "python3":
            break
        result.append(word)
    for option, value in (("--name", name), ("--cidfile", os.path.join(folder, name + ".cid"))):
        for i, word in enumerate(result):
            if word == option:
                result[i + 1] = value
            elif word.startswith(option + "="):
                result[i] = f"{option}={value}"
    return result + command


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def processor_seconds(pid):
    """What a process and all its descendants that have ended have used."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def share_of_tree_kib(pid):
    """The memory of a process and its descendants (PSS)."""
    return sum(map(share_of_memory_kib, [pid, *children_of(pid)]))


def guests_below(pid):
    return [each for each in children_of(pid)
            if command_line(each)[:1] == ["python3"] and "/ipc/entrypoint.py" in command_line(each)]


class Lines:
    """What a pipe gives, by whole lines: all that is there at once."""

    def __init__(self, pipe):
        self.descriptor, self.rest = pipe.fileno(), b""

    def read(self):
        chunk = os.read(self.descriptor, 1 << 20)
        if not chunk:
            raise RuntimeError("a process of the floor ended")
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        return lines


class Floor:
    """A bare container with the guest in it, and the shortest possible host: it passes each call to the MCP
    server, or answers it itself where there is none."""

    NUMBER = re.compile(rb'"id":\s*(\d+)')
    RESULT = b'{"content":[{"type":"text","text":"hello"}]}'

    def __init__(self, command, server, options):
        def start(words):
            return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, bufsize=0, **options)
        self.guest, self.output = start(command), []
        self.server = start(server) if server else None
        self.pipes = {each.stdout.fileno(): (Lines(each.stdout), take)
                      for each, take in ((self.guest, self.from_guest), (self.server, self.from_server)) if each}
        self.wait_for("ready")

    def wait_for(self, what):
        while True:
            for descriptor in select.select(list(self.pipes), [], [], 30)[0]:
                lines, take = self.pipes[descriptor]
                if what in [take(line) for line in lines.read()]:
                    return

    def from_guest(self, line):
        """Acts on a frame of the guest; its type, as far as it matters here."""
        if b'"rpc_request"' in line:
            number = self.NUMBER.search(line).group(1)
            if self.server:
                self.server.stdin.write(b'{"jsonrpc":"2.0","id":' + number + b',"method":"tools/call","params":'
                                        b'{"name":"echo","arguments":{"message":"hello"}}}\n')
            else:
                self.respond(number, self.RESULT)
        elif b'"stdout"' in line:
            self.output.append(json.loads(line).get("data", ""))
        return "done" if b'"done"' in line else "ready" if b'"ready"' in line else None

    def from_server(self, line):
        self.respond(self.NUMBER.search(line).group(1), self.RESULT)

    def respond(self, number, payload):
        self.guest.stdin.write(b'{"type":"rpc_response","id":' + number + b',"success":true,"payload":' +
                               payload + b"}\n")

    def run(self, code):
        server = {"name": "stub", "alias": "stub", "description": ""}
        limits = {"callsInFlight": 32, "frameBytes": 1 << 24, "outputChunkBytes": 1 << 18}
        for frame in ({"type": "init", "servers": [server], "discovered": [server], "limits": limits},
                      {"type": "execute", "id": "bench", "code": code}):
            self.guest.stdin.write(json.dumps(frame).encode() + b"\n")
        self.wait_for("done")
        return "".join(self.output)

    def close(self):
        for each in (self.guest, self.server):
            if each:
                each.stdin.close()
                each.wait(30)
                each.stdout.close()


def figures_of(text):
    found = dict(re.findall(r"(ROUNDTRIP|OVERLAPPING) ([0-9.e+-]+)", text))
    return float(found["ROUNDTRIP"]), float(found["OVERLAPPING"])


class Bench:
    def __init__(self, binary, runs, folder):
        self.binary, self.runs, self.folder = binary, runs, folder
        self.owner = account()
        self.rows = []
        self.names = itertools.count()
        self.server = ["/usr/bin/python3", os.path.join(folder, "recording_server.py")]
        shutil.copy(os.path.join(HERE, "..", "support", "recording_server.py"), folder)
        os.makedirs(os.path.join(folder, "state"))
        with open(os.path.join(folder, "state", "servers.json"), "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"stub": {"command": self.server[0], "args": self.server[1:]}}}, file)
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o755)
            os.chown(path, self.owner.pw_uid, self.owner.pw_gid)
        # The command line's processes are what most rows are compared with.
        self.env = {**os.environ, "MCP_BRIDGE_DRIVER": "cli", "MCP_BRIDGE_STATE_DIR": os.path.join(folder, "state"),
                    "MCP_BRIDGE_LOG_LEVEL": "error"}

    def client(self, pool=0, **settings):
        return StdioClient([self.binary], env={**self.env, "MCP_BRIDGE_POOL": str(pool), **settings})

    def row(self, what, value, note=""):
        self.rows.append({"what": what, "value": value, "note": note})
        print(f"{what:<58}{value:>12}   {note}", flush=True)

    def start_up(self):
        samples = []
        for _ in range(self.runs):
            with self.client() as client:
                samples.append(client.initialize_seconds)
        self.row("start to `initialize` answered", f"{statistics.median(samples) * 1e3:.1f} ms", "aim 20 ms")

    def plain(self, words, count=1):
        """Seconds that so many `podman run` with the same flags take together."""
        commands = [adapt(words, self.folder, f"bench-{os.getpid()}-{next(self.names)}",
                          ["python3", "-I", "-S", "-c", "print(6*7)"]) for _ in range(count)]
        begin = time.perf_counter()
        processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, **as_account(self.owner)) for command in commands]
        if any([process.wait(60) for process in processes]):
            raise RuntimeError("podman run failed")
        return time.perf_counter() - begin

    def plain_each(self, words, count):
        """Seconds that each of so many `podman run` at once takes."""
        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            begin = time.perf_counter()
            ends = [threads.submit(lambda: (self.plain(words), time.perf_counter())[1]) for _ in range(count)]
            return [end.result() - begin for end in ends]

    def cold(self, client, words):
        ours, plain = [], []
        for _ in range(self.runs):
            ours.append(seconds(lambda: client.run("print(6*7)")))
            plain.append(self.plain(words))
        ratio = statistics.median(a / b for a, b in zip(ours, plain))
        self.row("plain `podman run`, same flags", f"{statistics.median(plain) * 1e3:.0f} ms")
        self.row("cold run_python", f"{statistics.median(ours) * 1e3:.0f} ms")
        self.row("cold run_python / podman run", f"{ratio:.2f}", "goal 1.2 or less")

    @staticmethod
    def wait_for_pool(client, size):
        """Until so many sandboxes wait: their commands run, and boot no more."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            waiting = [pid for pid in children_of(client.pid) if "run" in command_line(pid)]
            time.sleep(0.5)
            if len(waiting) == size and waiting == [
                    pid for pid in children_of(client.pid) if "run" in command_line(pid)]:
                return
        raise RuntimeError("the pool doesn't fill")

    def warm(self, client, words, size):
        ours, plain, ours_together, plain_together = [], [], [], []
        for _ in range(self.runs):
            self.wait_for_pool(client, size)
            ours.append(seconds(lambda: client.run("print(6*7)")))
            plain.append(self.plain(words))
        for _ in range(max(3, self.runs // 3)):
            self.wait_for_pool(client, size)
            begin = time.perf_counter()
            for reply in [client.start_run("print(6*7)") for _ in range(size)]:
                reply.result()
            ours_together.append(time.perf_counter() - begin)
            self.wait_for_pool(client, size)
            plain_together.append(self.plain(words, size))
        self.row("warm run_python", f"{statistics.median(ours) * 1e3:.1f} ms", "aim 5 ms")
        self.row("podman run / warm run_python", f"{statistics.median(b / a for a, b in zip(ours, plain)):.0f}",
                 "goal 40 or more")
        ratio = statistics.median(b / a for a, b in zip(ours_together, plain_together))
        self.row(f"{size} at once with the pool full", f"{statistics.median(ours_together) * 1e3:.0f} ms")
        self.row(f"{size} podman run at once / that", f"{ratio:.0f}", "goal 4 or more")

    def drivers(self, words):
        """Each way to start sandboxes against the first, and against `podman run`, all in turn."""
        clients = {name: self.client(**settings) for name, settings in DRIVERS.items()}
        cold, plain, rates, used = ({name: [] for name in DRIVERS} for _ in range(4))
        for name, client in clients.items():
            client.run("pass", wait=120)
        for _ in range(self.runs):
            reference = self.plain(words)
            for name, client in clients.items():
                cold[name].append(seconds(lambda: client.run("print(6*7)")))
                plain[name].append(reference)
        for _ in range(3):
            for name, client in clients.items():
                before = processor_seconds(client.pid)
                rate, count = self.sustained(client)
                rates[name].append(rate)
                used[name].append((processor_seconds(client.pid) - before) / count)
        for client in clients.values():
            client.close()
        first = next(iter(DRIVERS))
        for name in DRIVERS:
            ratio = statistics.median(a / b for a, b in zip(cold[name], plain[name]))
            self.row(f"cold run_python, {name}", f"{statistics.median(cold[name]) * 1e3:.0f} ms",
                     f"{statistics.median(used[name]) * 1e3:.0f} ms of processor time, 4 at once")
            self.row(f"cold run_python, {name} / podman run", f"{ratio:.2f}",
                     "goal 0.5 or less" if name == "oci" else "")
            self.row(f"fresh sandboxes sustained, {name}", f"{statistics.median(rates[name]):.1f} /s")
            if name != first:
                ratio = statistics.median(a / b for a, b in zip(rates[name], rates[first]))
                self.row(f"fresh sandboxes sustained, {name} / {first}", f"{ratio:.2f}", RATE_GOALS[name])
            self.idle(name)

    @staticmethod
    def sustained(client, in_flight=4):
        """Fresh sandboxes a second, always so many runs at once, and how many there were."""
        begin, finished, replies = time.perf_counter(), 0, []
        while time.perf_counter() < begin + SUSTAINED_SECONDS:
            replies += [client.start_run("pass") for _ in range(in_flight - len(replies))]
            answer = replies.pop(0).result(120)["structuredContent"]
            if answer["status"] != "success":
                raise RuntimeError(f"a run failed: {answer}")
            finished += 1
        rate = finished / (time.perf_counter() - begin)
        for reply in replies:
            reply.result()
        return rate, finished + len(replies)

    def idle(self, name, size=8):
        """What each sandbox that waits adds to all that there is of processes."""
        totals = []
        for count in (0, size):
            with self.client(pool=count, **DRIVERS[name]) as client:
                client.run("pass", wait=120)
                deadline = time.monotonic() + 60
                while len(guests_below(client.pid)) != count:
                    if time.monotonic() > deadline:
                        raise RuntimeError("the pool doesn't fill")
                    time.sleep(0.2)
                time.sleep(1)
                totals.append(share_of_tree_kib(client.pid))
        self.row(f"memory of a sandbox that waits, {name}", f"{(totals[1] - totals[0]) / size / 1024:.1f} MiB")

    def burst(self, client, words, size):
        """Many at once, more than the pool and the admission hold: how long the slowest take."""
        ours, plain = [], []
        for _ in range(max(3, self.runs // 3)):
            self.wait_for_pool(client, 8)
            begin = time.perf_counter()
            replies = [client.start_run("print(6*7)") for _ in range(size)]
            for reply in replies:
                reply.result(120)
            ours += [reply.arrived - begin for reply in replies]
            plain += self.plain_each(words, size)
        figures = [statistics.quantiles(each, n=100)[98] for each in (ours, plain)]
        self.row(f"p99 of {size} at once", f"{figures[0] * 1e3:.0f} ms")
        self.row(f"p99 of {size} podman run at once / that", f"{figures[1] / figures[0]:.1f}")

    def calls(self, client, words):
        options = as_account(self.owner)
        guest = words[words.index("python3"):]
        figures = {"ours": [], "floor": [], "bare": []}
        for i in range(max(3, self.runs // 3)):
            figures["ours"].append(figures_of(client.run(CALLS, ["stub"], 60)["stdout"]))
            for kind, server in (("floor", self.server), ("bare", None)):
                floor = Floor(adapt(words, self.folder, f"{kind}-{os.getpid()}-{i}", guest), server, options)
                figures[kind].append(figures_of(floor.run(CALLS)))
                floor.close()
        trips = {kind: statistics.median(trip for trip, _ in each) for kind, each in figures.items()}
        rates = {kind: statistics.median(rate for _, rate in each) for kind, each in figures.items()}
        self.row("tool call, round trip", f"{trips['ours'] * 1e6:.0f} us", "aim 500 us")
        self.row("tool call, floor", f"{trips['floor'] * 1e6:.0f} us",
                 f"{trips['bare'] * 1e6:.0f} us where the host answers itself")
        self.row("tool call / floor", f"{trips['ours'] / trips['floor']:.2f}", "goal 1.5 or less")
        self.row("2,000 overlapping calls", f"{rates['ours']:.0f} /s", "aim 5000 /s")
        self.row("2,000 overlapping calls, floor", f"{rates['floor']:.0f} /s",
                 f"{rates['bare']:.0f} /s where the host answers itself")
        self.row("floor's rate / ours", f"{rates['floor'] / rates['ours']:.2f}", "goal 1.5 or less")

    def output(self, client):
        before = resident_kib(client.pid)
        for megabytes in (8, 200):
            code = f"import os\nchunk = b'y' * 1000000\nfor _ in range({megabytes}): os.write(1, chunk)"
            begin = time.perf_counter()
            answer = client.run(code, timeout=100)
            took = time.perf_counter() - begin
            total = answer["truncated"]["stdout"]["totalBytes"]
            if total != megabytes * 1000000:
                raise RuntimeError(f"{total} bytes counted of {megabytes} MB")
            self.row(f"{megabytes} MB of output", f"{took * 1e3:.0f} ms", f"{megabytes / took:.0f} MB/s")
        self.row("memory gained by that", f"{(resident_kib(client.pid) - before) / 1024:.1f} MiB")

    def only_drivers(self):
        with self.client() as client:
            self.drivers(podman_command(client))

    def everything(self):
        self.start_up()
        with self.client() as client:
            client.run("pass")
            self.row("resident, idle after a run", f"{resident_kib(client.pid) / 1024:.1f} MiB", "aim 25 MiB")
            words = podman_command(client)
            self.cold(client, words)
            self.calls(client, words)
            self.output(client)
            self.drivers(words)
        with self.client(pool=8) as client:
            words = podman_command(client)
            self.warm(client, words, 8)
            self.burst(client, words, 32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(HERE, "..", "..", "build", "bulkhead"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--drivers", action="store_true", help="only what the ways to start sandboxes differ in")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bulkhead-bench-") as folder:
        bench = Bench(os.path.abspath(arguments.binary), arguments.runs, folder)
        bench.only_drivers() if arguments.drivers else bench.everything()
        if arguments.json:
            print(json.dumps(bench.rows))


if __name__ == "__main__":
    main()
