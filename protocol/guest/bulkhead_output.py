"""Standard output and error: pipes at fd 1 and 2, pumped into frames, and the streams on top.

Whatever writes to those descriptors (child processes, C libraries, os.write) becomes output of the
run, in order per stream, and cannot be taken for a frame.
"""
import builtins
import posix
import select
import sys
import time
import _thread
from _codecs import utf_8_decode
from io import FileIO, TextIOWrapper

from bulkhead_json import encode_text, to_bytes

CHUNK_BYTES = 64 * 1024
PIPE_BYTES = 1024 * 1024
# After a short read the pump lets this much time pass, so that a program printing line by line is
# not slowed down by a frame and a switch of threads for each.
PAUSE_SECONDS = 0.002
_SHORT_READ = 16 * 1024
_F_SETPIPE_SZ, _F_GETPIPE_SZ = 1031, 1032  # fcntl.h; named in Python only since 3.10


def _enlarge(descriptor):
    """Ask for a 1 MiB pipe; how much it holds at most in the end."""
    import fcntl

    try:
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        pass  # Over the user's pipe budget, or not known here: a smaller pipe is only slower.
    try:
        return fcntl.fcntl(descriptor, _F_GETPIPE_SZ)
    except OSError:
        return PIPE_BYTES


class Pump:
    """Forwards one pipe as `stdout` or `stderr` frames while a run lasts, drops it in between."""

    def __init__(self, name, read_end, write_end, descriptor, channel):
        self.frame_limit = 256 * 1024
        self._name = name
        self._head = b'{"type":"%b",' % name.encode()
        self._read_end = read_end
        self._write_end = write_end
        self._descriptor = descriptor
        self._channel = channel
        self._lock = _thread.allocate_lock()
        self._partial = b""  # the first bytes of a character still to be completed
        self._forwarding = False
        self._draining = False
        self._capacity = _enlarge(read_end)
        posix.set_blocking(read_end, False)

    def start(self, guarded):
        _thread.start_new_thread(guarded, (self._pump,))

    def begin(self):
        """A run begins: drop what survivors of an earlier one left, put the pipe back in place."""
        with self._lock:
            self._read_up_to(self._capacity)
            self._partial = b""
            posix.dup2(self._write_end, self._descriptor)
            self._forwarding = True

    def finish(self):
        """Forward all that was written before this call, then drop what comes. The pipe's capacity
        bounds it, so that a survivor which never stops writing does not keep the run open."""
        self._draining = True
        with self._lock:
            self._draining = False
            self._read_up_to(self._capacity)
            if self._partial:
                self._send_bytes(self._partial)
                self._partial = b""
            self._forwarding = False

    def flush(self):
        """Forward all that was written before this call, and go on."""
        with self._lock:
            self._read_up_to(self._capacity)

    def _read_up_to(self, left):
        while left > 0:
            size = self._forward_once()
            if size == 0:
                return
            left -= size

    def _pump(self):
        poller = select.poll()
        poller.register(self._read_end, select.POLLIN)
        while True:
            poller.poll()
            with self._lock:
                size = self._forward_once()
            if size < _SHORT_READ or self._draining or not self._forwarding:
                time.sleep(PAUSE_SECONDS)

    def _forward_once(self):
        """Read once and forward it; the number of bytes read, 0 if there are none now."""
        try:
            data = posix.read(self._read_end, CHUNK_BYTES - len(self._partial))
        except BlockingIOError:
            return 0
        if data and self._forwarding:
            self._forward(self._partial + data)
        return len(data)

    def _forward(self, data):
        try:
            text, used = utf_8_decode(data, "strict", False)
        except UnicodeDecodeError:
            self._partial = b""
            self._send_bytes(data)
            return
        self._partial = data[used:]
        if text:
            self._send_text(text)

    def _send_text(self, text):
        frame = b'%b"data":%b}\n' % (self._head, to_bytes(encode_text(text)))
        if len(frame) > self.frame_limit and len(text) > 1:
            # Control characters take six bytes each as JSON.
            middle = len(text) // 2
            self._send_text(text[:middle])
            self._send_text(text[middle:])
        else:
            self._channel.write(frame)

    def _send_bytes(self, data):
        from binascii import b2a_base64

        self._channel.write(b'%b"b64":"%b"}\n' % (self._head, b2a_base64(data, newline=False)))


class _WholeWrites(FileIO):
    """A raw file whose write takes all of it: a text stream on top ignores short counts, so a
    signal in the middle of a large write, or a child that made the pipe non-blocking, lost data."""

    def write(self, data):
        written = FileIO.write(self, data)
        size = memoryview(data).nbytes
        if written == size:
            return size
        rest = memoryview(data).cast("B")[written or 0:]
        while rest:
            written = FileIO.write(self, rest)
            if written is None:
                poller = select.poll()
                poller.register(self.fileno(), select.POLLOUT)
                poller.poll()
            else:
                rest = rest[written:]
        return size


def print_at_once(*values, sep=None, end=None, file=None, flush=False):
    """Prints the values to a stream, or to sys.stdout by default.

    sep: string between the values, a space by default. end: string after the last, a newline by
    default. file: an object with a write method. flush: whether to flush the stream afterwards."""
    for name, text in (("sep", sep), ("end", end)):
        if text is not None and not isinstance(text, str):
            raise TypeError("%s must be None or a string, not %s" % (name, type(text).__name__))
    if file is None:
        file = sys.stdout
        if file is None:
            return
    text = (" " if sep is None else sep).join(map(str, values))
    end = "\n" if end is None else end
    if len(text) < CHUNK_BYTES:
        file.write(text + end)
    else:
        file.write(text)
        file.write(end)
    if flush:
        file.flush()


def install_print():
    """The built-in print writes each value, separator and end by itself: on an unbuffered stream a
    system call each, and lines of several threads or processes get mixed up."""
    print_at_once.__name__ = print_at_once.__qualname__ = "print"
    print_at_once.__module__ = "builtins"
    builtins.print = print_at_once


def open_streams():
    """Make sys.stdout and sys.stderr anew: unbuffered, UTF-8, never raising for a character."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = _WholeWrites(descriptor, "wb", closefd=False)
        raw.name = "<%s>" % name
        stream = TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace",
                               write_through=True)
        stream.mode = "w"
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)
    if sys.stdin is None or sys.stdin.closed:  # as after exit()
        sys.stdin = sys.__stdin__ = open(0, closefd=False)


def flush_streams():
    """Flush what user code may have put in place of the streams, whatever that does."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass
