"""The frame channel: one thread reads frames, one sends requests and `done`, anyone sends output.

User code runs on the main thread and may be interrupted at any bytecode, so the main thread never
writes a request itself: it puts it in the outbox (one atomic C call) and a half-written frame
cannot happen. The outbox also gives the order that matters: nothing asked after `done` is sent.
"""
import posix
import select
import _thread
from _queue import Empty, SimpleQueue

from bulkhead_json import decode, encode, to_bytes

_CLOSED = {"success": False, "error": {
    "code": "closed",
    "message": "the run that this call belongs to has ended, so it can call no more tools"}}
_SENT = {"success": True}
_OPEN = object()
_SLOT_FREE = object()


class Call:
    """One request and whoever waits for its answer on a lock: any thread without an event loop."""

    __slots__ = ("id", "body", "answer", "abandoned", "loop", "_lock")

    def __init__(self, body):
        self.id = 0  # Once it is sent.
        self.body = body
        self.answer = None
        self.abandoned = False
        self.loop = None
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def wait(self):
        self._lock.acquire()
        return self.answer

    def wake(self):
        self._lock.release()


class Parcel(Call):
    """A whole frame that nobody answers; whoever sends it waits until it is written, so that no
    second copy of much data piles up here."""

    __slots__ = ()


class AwaitedCall:
    """One request and the future of the event loop that awaits it."""

    __slots__ = ("id", "body", "answer", "abandoned", "loop", "_future")

    def __init__(self, body, loop):
        self.id = 0
        self.body = body
        self.answer = None
        self.abandoned = False
        self.loop = loop
        self._future = loop.create_future()

    async def wait(self):
        return await self._future

    def wake(self):
        """On the loop's own thread."""
        if not self._future.done():
            self._future.set_result(self.answer)


class _Abandoned:
    """Put into the outbox after its call."""

    __slots__ = ("call",)

    def __init__(self, call):
        self.call = call


def _wake_all(calls):
    for call in calls:
        call.wake()


class Channel:
    """Frames in and out. `calls_in_flight` requests are with the host at most; more wait here.
    `give_up(failure)` ends the process: without its channel nothing can be said to the host."""

    def __init__(self, descriptor_in, descriptor_out, give_up):
        self._in = descriptor_in
        self._out = descriptor_out
        self._give_up = give_up
        self._write_lock = _thread.allocate_lock()
        self._outbox = SimpleQueue()
        self._waiting = []
        self._pending = {}
        self._last_id = 0
        self._open = False
        self.calls_in_flight = 32
        self.frame_bytes = 16 * 1024 * 1024
        self.artifact_bytes = 12 * 1024 * 1024
        self.artifacts_bytes = 64 * 1024 * 1024
        self.artifacts = 64
        self.runs = 0  # begun so far
        # Set in a forked child: the frames belong to the parent alone.
        self.disowned = False
        self.inbox = SimpleQueue()
        self.on_cancel = lambda run_id: None

    def start(self):
        for loop in (self._read_frames, self._serve_outbox):
            _thread.start_new_thread(self.guarded, (loop,))

    def guarded(self, loop):
        """Run a thread's loop; if it fails, so does the guest."""
        try:
            loop()
        except BaseException as failure:
            self._give_up(failure)

    # Sending

    def submit(self, call):
        """Queue a call; its answer wakes it, at the latest when the run ends."""
        if self.disowned:
            call.answer = _CLOSED
            _deliver([call])
        else:
            self._outbox.put(call)

    def abandon(self, call):
        """Nobody waits for the call any more: it isn't sent, or the host is told. Its place is free
        once the host has answered, as it does all the same."""
        call.abandoned = True
        self._outbox.put(_Abandoned(call))

    def open(self):
        """A run begins: calls are taken from here on."""
        self.runs += 1
        self._outbox.put(_OPEN)

    def close(self, done):
        """The run has ended: fail its calls, send the frame `done`, refuse what comes after."""
        self._outbox.put(to_bytes(encode(done)) + b"\n")

    def write(self, frame):
        """Write one whole frame; blocks while the host does not read. Not for the main thread while
        it runs user code."""
        with self._write_lock:
            self._write_all(frame)

    def _write_all(self, data):
        view = memoryview(data)
        while view:
            try:
                view = view[posix.write(self._out, view):]
            except BlockingIOError:
                _wait_for(self._out, select.POLLOUT)
            except BrokenPipeError:
                posix._exit(0)
            except OSError as failure:
                self._give_up(failure)

    def _serve_outbox(self):
        while True:
            items = [self._outbox.get()]
            try:
                while True:
                    items.append(self._outbox.get_nowait())
            except Empty:
                pass
            frames = []
            parcels = []
            for item in items:
                self._take(item, frames, parcels)
            # Append first, then look at `pending`: the reader removes first, then looks at
            # `waiting`. Whatever the order, one of the two sees the free slot.
            self._fill_slots(frames)
            if frames:
                self.write(b"".join(frames))
            for parcel in parcels:
                parcel.answer = _SENT
                parcel.wake()

    def _take(self, item, frames, parcels):
        if item is _SLOT_FREE:
            return
        if item is _OPEN:
            self._open = True
        elif isinstance(item, bytes):
            self._open = False
            abandoned = self._waiting + list(self._pending.values())
            self._waiting = []
            self._pending.clear()
            _refuse(abandoned)
            frames.append(item)
        elif isinstance(item, _Abandoned):
            if self._pending.get(item.call.id) is item.call:
                frames.append(b'{"type":"rpc_cancel","id":%d}\n' % item.call.id)
        elif not self._open:
            _refuse([item])
        elif isinstance(item, Parcel):
            frames.append(item.body)
            parcels.append(item)
        else:
            self._waiting.append(item)

    def _fill_slots(self, frames):
        taken = 0
        for call in self._waiting:
            if len(self._pending) >= self.calls_in_flight:
                break
            taken += 1
            if not call.abandoned:
                self._last_id += 1
                call.id = self._last_id
                self._pending[self._last_id] = call
                frames.append(b'{"type":"rpc_request","id":%d,"payload":%b}\n'
                              % (self._last_id, call.body))
        del self._waiting[:taken]

    # Receiving

    def _read_frames(self):
        started = []
        while True:
            try:
                chunk = posix.read(self._in, 1 << 16)
            except BlockingIOError:
                _wait_for(self._in, select.POLLIN)
                continue
            if not chunk:
                posix._exit(0)
            lines = chunk.split(b"\n")
            started.append(lines[0])
            if len(lines) == 1:
                continue
            lines[0] = b"".join(started)
            started = [lines.pop()]
            answered = [call for call in map(self._receive, lines) if call is not None]
            if answered:
                _deliver(answered)
                if self._waiting:
                    self._outbox.put(_SLOT_FREE)

    def _receive(self, line):
        """Act on one frame; the call that it answers, if it is an answer somebody waits for."""
        if not line:
            return None
        frame = _decode_whatever_the_limit(line.decode())
        kind = frame["type"]
        if kind == "rpc_response":
            call = self._pending.pop(frame["id"], None)
            if call is not None:
                call.answer = frame
            return call
        if kind == "cancel":
            self.on_cancel(frame["id"])
        elif kind == "shutdown":
            posix._exit(0)
        else:
            self.inbox.put(frame)
        return None


def _decode_whatever_the_limit(text):
    try:
        return decode(text)
    except RecursionError:
        # User code may set a recursion limit too low even to read frames.
        import sys
        sys.setrecursionlimit(1000)
        return decode(text)


def _wait_for(descriptor, event):
    poller = select.poll()
    poller.register(descriptor, event)
    poller.poll()


def _refuse(calls):
    for call in calls:
        call.answer = _CLOSED
    _deliver(calls)


def _deliver(calls):
    by_loop = {}
    for call in calls:
        if call.loop is None:
            call.wake()
        else:
            by_loop.setdefault(call.loop, []).append(call)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_wake_all, group)
        except RuntimeError:
            pass  # The loop is closed, so nobody awaits them any more.
