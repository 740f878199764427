"""A small MCP client over stdio for tests and the bench: any number of requests at once, none without a
deadline. Python's standard library only."""

import json
import os
import subprocess
import threading
import time


class Reply:
    """The answer to one request, as it arrives."""

    def __init__(self):
        self._ready = threading.Event()
        self._message = None
        self.arrived = None  # by time.perf_counter

    def put(self, message):
        self._message = message
        self.arrived = time.perf_counter()
        self._ready.set()

    @property
    def done(self):
        return self._ready.is_set()

    def message(self, timeout):
        if not self._ready.wait(timeout):
            raise TimeoutError(f"no answer within {timeout} s")
        return self._message

    def result(self, timeout=60):
        message = self.message(timeout)
        if "error" in message:
            raise RuntimeError(json.dumps(message["error"]))
        return message["result"]


class StdioClient:
    """Starts a server and talks to it; `with` closes its stdin and reaps it."""

    def __init__(self, command, env=None, stderr=None, handshake=True):
        self.started = time.perf_counter()
        self.stderr_path = stderr
        log = open(stderr, "ab") if stderr else subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, env=env)
        if stderr:
            log.close()
        self.notifications = []
        self._replies = {}
        self._lock = threading.Lock()
        self._next = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.initialize_seconds = None
        if handshake:
            self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                        "clientInfo": {"name": "tests", "version": "1"}}).result()
            self.initialize_seconds = time.perf_counter() - self.started
            self.notify("notifications/initialized")

    @property
    def pid(self):
        return self.process.pid

    def send_line(self, line):
        with self._lock:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def send(self, message):
        self.send_line(json.dumps(message).encode() + b"\n")

    def request(self, method, params=None, meta=None):
        """Sends a request and returns its Reply; `meta` goes to params._meta."""
        with self._lock:
            self._next += 1
            number = self._next
            reply = self._replies[number] = Reply()
        reply.id = number
        params = dict(params or {})
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return reply

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def start_run(self, code, servers=(), timeout=None, meta=None, **more):
        """`more`: other arguments of run_python, e.g. session."""
        arguments = {"code": code, **more}
        if servers:
            arguments["servers"] = list(servers)
        if timeout is not None:
            arguments["timeout"] = timeout
        return self.request("tools/call", {"name": "run_python", "arguments": arguments}, meta)

    def run(self, code, servers=(), timeout=None, wait=120):
        """The structured content of a run."""
        return self.start_run(code, servers, timeout).result(wait)["structuredContent"]

    def cancel(self, reply):
        self.notify("notifications/cancelled", {"requestId": reply.id, "reason": "test"})

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.notifications.append(message)
                continue
            with self._lock:
                reply = self._replies.pop(message.get("id"), None)
            if reply is None:
                self.notifications.append(message)
            else:
                reply.put(message)
        with self._lock:
            waiting, self._replies = self._replies, {}
        for reply in waiting.values():
            reply.put({"error": {"code": 0, "message": "the server closed its output"}})

    def close(self, timeout=20):
        """Ends the session as a host does, and returns the exit status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.process.wait(timeout)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._reader.join(timeout)
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def status_field(pid, name):
    """A field of /proc/PID/status, as text; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(name + ":"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def share_of_memory_kib(pid):
    """The process's proportional share (PSS), 0 when it is gone or another's."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def resident_kib(pid):
    return int(status_field(pid, "VmRSS").split()[0])


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def children_of(pid):
    """The processes below `pid`, deepest last."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            parent = status_field(entry, "PPid")
            if parent:
                parents.setdefault(int(parent), []).append(int(entry))
    found, queue = [], [pid]
    while queue:
        for child in parents.get(queue.pop(0), []):
            found.append(child)
            queue.append(child)
    return found


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [part.decode(errors="replace") for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return []
