"""A small host for the guest's tests: starts the real entry point, speaks frames over its pipes."""
import base64
import heapq
import itertools
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

GUEST = pathlib.Path(__file__).resolve().parents[2] / "protocol" / "guest"

SERVERS = [
    {"name": "files", "alias": "files", "description": "reads files"},
    {"name": "my-server", "alias": "my_server", "description": "has a dash"},
]
DISCOVERED = SERVERS + [{"name": "other", "alias": "other", "description": "not for this run"}]
# Far above what anything takes: only a hang, not a busy machine, may reach it.
DEADLINE_SECONDS = 60


def text_result(*texts):
    return {"content": [{"type": "text", "text": text} for text in texts]}


def echo(payload):
    """A handler: the tool's value is the request."""
    return {"content": [], "structuredContent": payload}


class Refusal(Exception):
    """Raised by a handler: the host answers with this error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Later:
    """Returned by a handler: the answer, so many seconds from now."""

    def __init__(self, seconds, payload):
        self.seconds = seconds
        self.payload = payload


class Together:
    """Returned by a handler: the answer, once so many requests wait for theirs."""

    def __init__(self, count, payload):
        self.count = count
        self.payload = payload


class NoAnswer:
    """Returned by a handler: the host never answers."""


class Run:
    """All that came back of one run."""

    def __init__(self):
        self.frames = []
        self.requests = []
        self.cancelled = []
        self.by_id = {}
        self.artifacts = []
        self.done = None
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.seconds = None

    @property
    def stdout(self):
        return self.output["stdout"].decode()

    @property
    def stderr(self):
        return self.output["stderr"].decode()

    @property
    def exit_code(self):
        return self.done["exitCode"]

    @property
    def value(self):
        return self.done["result"]["value"]


class FakeHost:
    """One guest process. `handler(payload)` answers its requests."""

    def __init__(self, handler=None, servers=SERVERS, discovered=DISCOVERED, limits=None,
                 init=True, autoload=False):
        self.handler = handler or (lambda payload: text_result("ok"))
        self.workspace = tempfile.mkdtemp(prefix="bulkhead-guest-test-")
        self._due = []
        self._held = []
        self._ids = itertools.count(1)
        self._order = itertools.count()
        self._frames = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-u", str(GUEST / "entrypoint.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            cwd=self.workspace,
            env={"HOME": self.workspace, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ready = self.next_frame()
        if init:
            self.send({"type": "init", "servers": servers, "discovered": discovered,
                       "limits": {"callsInFlight": 32, "frameBytes": 16777216,
                                  "outputChunkBytes": 262144, **(limits or {})},
                       **({"autoload": True} if autoload else {})})

    def _read(self):
        started = []
        while True:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                break
            lines = data.split(b"\n")
            started.append(lines[0])
            if len(lines) > 1:
                lines[0] = b"".join(started)
                started = [lines.pop()]
                for line in lines:
                    self._frames.put(json.loads(line, object_pairs_hook=_no_duplicates))
        self._frames.put(None)

    def send(self, frame):
        self.send_raw(json.dumps(frame).encode() + b"\n")

    def send_raw(self, data):
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view):]

    def next_frame(self, timeout=DEADLINE_SECONDS):
        """The next frame; None at the end of the guest's channel."""
        try:
            return self._frames.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError("no frame within %s s" % timeout) from None

    def start(self, code, **more):
        """Send code to execute; `more` goes into the frame."""
        run_id = "run-%d" % next(self._ids)
        self.send({"type": "execute", "id": run_id, "code": textwrap.dedent(code), **more})
        return run_id

    def run(self, code, until=None, **more):
        """Execute code and answer its requests until `done`, or until `until(run)` holds."""
        started = time.monotonic()
        run = self.follow(Run(), self.start(code, **more), until)
        run.seconds = time.monotonic() - started
        return run

    def follow(self, run, run_id, until=None):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            frame = self._frame_or_due(deadline)
            if frame is not None and frame["type"] == "started":
                assert frame["id"] == run_id and not run.frames, frame
            elif frame is not None:
                run.frames.append(frame)
                if frame["type"] in run.output:
                    run.output[frame["type"]] += bytes_of(frame)
                elif frame["type"] == "rpc_request":
                    run.requests.append(frame["payload"])
                    run.by_id[frame["id"]] = frame["payload"]
                    self._answer(frame)
                elif frame["type"] == "rpc_cancel":
                    run.cancelled.append(run.by_id[frame["id"]])
                    self.send({"type": "rpc_response", "id": frame["id"], "success": False,
                               "error": {"code": "cancelled", "message": "cancelled"}})
                elif frame["type"] == "artifact":
                    run.artifacts.append(
                        (frame["name"], frame["mimeType"], base64.b64decode(frame["b64"])))
                elif frame["type"] == "done":
                    assert frame["id"] == run_id, frame
                    run.done = frame
                    return run
                else:
                    raise AssertionError("unexpected frame %r" % frame)
            if until is not None and until(run):
                return run

    def _frame_or_due(self, deadline):
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            self.send(heapq.heappop(self._due)[2])
        wait = min([deadline] + [self._due[0][0]] if self._due else [deadline]) - now
        try:
            frame = self._frames.get(timeout=max(wait, 0))
        except queue.Empty:
            if time.monotonic() >= deadline:
                raise AssertionError("the run did not end in time") from None
            return None
        if frame is None:
            raise AssertionError("the guest ended with status %s: %s"
                                 % (self.process.wait(5), self.process.stderr.read().decode()))
        return frame

    def _answer(self, frame):
        answer = {"type": "rpc_response", "id": frame["id"], "success": True}
        try:
            payload = self.handler(frame["payload"])
        except Refusal as refusal:
            answer.update(success=False, error={"code": refusal.code, "message": str(refusal)})
            payload = None
        if payload is NoAnswer:
            return
        if isinstance(payload, Later):
            answer["payload"] = payload.payload
            due = time.monotonic() + payload.seconds
            heapq.heappush(self._due, (due, next(self._order), answer))
            return
        if isinstance(payload, Together):
            answer["payload"] = payload.payload
            self._held.append(answer)
            if len(self._held) == payload.count:
                while self._held:
                    self.send(self._held.pop())
            return
        if answer["success"]:
            answer["payload"] = payload
        self.send(answer)

    def wait(self, timeout=DEADLINE_SECONDS):
        return self.process.wait(timeout)

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
                self.process.wait(5)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        self._frames.maxsize = 0
        self._reader.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:
                pass
        shutil.rmtree(self.workspace, ignore_errors=True)


def bytes_of(frame):
    return base64.b64decode(frame["b64"]) if "b64" in frame else frame["data"].encode()


def _no_duplicates(pairs):
    assert len(dict(pairs)) == len(pairs), "duplicate keys in a frame"
    return dict(pairs)


class GuestTest(unittest.TestCase):
    """Base of the tests: hosts made here are closed at the end."""

    def host(self, *args, **options):
        host = FakeHost(*args, **options)
        self.addCleanup(host.close)
        return host

    def run_code(self, code, handler=None, **options):
        return self.host(handler, **options).run(code)

    def assert_ok(self, run):
        self.assertEqual((run.exit_code, run.stderr), (0, ""))
