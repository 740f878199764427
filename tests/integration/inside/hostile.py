# What hostile code has at hand; tests put their own lines after it. It finds the frame descriptors without
# asking the guest's modules: pipes of this process that aren't its standard streams.
import fcntl
import gc
import json
import os
import select
import signal
import sys
import threading
import time


def find_channels():
    """Descriptors to read frames from and to write frames to, whatever their numbers are."""
    known = {os.readlink("/proc/self/fd/1"), os.readlink("/proc/self/fd/2")}
    reading, writing = [], []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
            mode = fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE
        except OSError:
            continue
        if target.startswith(("pipe:", "socket:")) and target not in known:
            if mode in (os.O_RDONLY, os.O_RDWR):
                reading.append(int(name))
            if mode in (os.O_WRONLY, os.O_RDWR):
                writing.append(int(name))
    return reading, writing


frames_in, frames_out = find_channels()


def forge(frame):
    """Writes bytes, or an object as a frame, to every descriptor that might be the channel."""
    data = frame if isinstance(frame, bytes) else json.dumps(frame).encode() + b"\n"
    for descriptor in frames_out:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(descriptor, view):]
            except BlockingIOError:
                select.select([], [descriptor], [])


def call(number, server, tool, **arguments):
    return {"type": "rpc_request", "id": number,
            "payload": {"type": "call_tool", "server": server, "tool": tool, "arguments": arguments}}


def session():
    """The guest's own session object, found as any code could find it."""
    return next(o for o in gc.get_objects() if type(o).__name__ == "Session" and hasattr(o, "_run_id"))


def listen():
    """Collects the answers that the host sends, from now on; the guest's reader goes on too."""
    channel = session()._channel
    answers, plain = {}, channel._receive

    def receive(line):
        if line:
            frame = json.loads(line)
            if frame.get("type") == "rpc_response":
                answers[frame["id"]] = frame
        return plain(line)

    channel._receive = receive
    return answers


def wait_for(answers, numbers, seconds=30):
    until = time.monotonic() + seconds
    while not set(numbers) <= set(answers) and time.monotonic() < until:
        time.sleep(0.01)
    return [answers.get(number, {}).get("error", answers.get(number)) for number in numbers]
