"""Many clients of an HTTP server at once, each on a connection that it keeps, each asking again as soon as it is
answered. One thread, and no more parsing than is needed, so that it takes little of the machine that it measures.
Python's standard library only."""

import re
import selectors
import socket
import statistics
import time

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
AGAIN = 0.05  # seconds until a client that was put off asks again
PATIENCE = 600  # seconds after which what is measured counts as hanging


def whole_answer(buffer):
    """The status and the body's text of an answer that has come whole, or None."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, body = buffer[:end], buffer[end + 4:]
    length = LENGTH.search(head)
    if length:
        whole = len(body) >= int(length.group(1))
    else:
        whole = bool(CHUNKED.search(head)) and body.endswith(b"\r\n0\r\n\r\n")
    return (int(head[9:12]), body) if whole else None


class Clients:
    """So many clients that all send this request; a pause comes between an answer and the next request. What they
    are answered must contain `expected`; those that are put off, for the queue is full, try again."""

    def __init__(self, port, request, count, expected, pause=0.0):
        self.request, self.expected, self.pause = request, expected, pause
        self.seconds = []
        self.put_off = 0
        self.all = [Client(self, port) for _ in range(count)]

    def take(self, status, body, seconds):
        """Counts an answer; the seconds until the next request."""
        if status == 429 or b'"status":"unavailable"' in body:
            self.put_off += 1
            return AGAIN
        if status != 200 or self.expected not in body:
            raise RuntimeError(f"an answer with status {status}: {body[:2000]}")
        self.seconds.append(seconds)
        return self.pause

    def percentile(self, hundredth):
        return statistics.quantiles(self.seconds, n=100, method="inclusive")[hundredth - 1]

    def close(self):
        for client in self.all:
            client.socket.close()


class Client:
    def __init__(self, group, port):
        self.group = group
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.begun, self.due = b"", None, 0.0

    def ask(self, now):
        self.begun, self.buffer = now, b""
        self.socket.sendall(self.group.request)

    def read(self, now):
        chunk = self.socket.recv(1 << 16)
        if not chunk:
            raise RuntimeError(f"the server closed a connection: {self.buffer[:2000]}")
        self.buffer += chunk
        answer = whole_answer(self.buffer)
        if answer:
            self.due = now + self.group.take(*answer, now - self.begun)
            self.begun = None


def drive(groups, enough):
    """Has them all ask until `enough()`; those that have asked then are left without an answer."""
    clients = [client for group in groups for client in group.all]
    give_up = time.perf_counter() + PATIENCE
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        while not enough():
            now = time.perf_counter()
            if now > give_up:
                raise RuntimeError(f"not enough answers within {PATIENCE} s")
            waiting = [client for client in clients if client.begun is None]
            for client in waiting:
                if client.due <= now:
                    client.ask(now)
            dues = [client.due - now for client in waiting if client.begun is None]
            for key, _ in selector.select(max(0.0, min([0.2, *dues]))):
                key.data.read(time.perf_counter())


def for_seconds(seconds):
    """`enough` for `drive`: so much time is over."""
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end
