"""A server that a test starts, kills and starts again on a port of loopback; and a proxy before it that notes what
passes, so that a test can see what a server was asked."""

import socket
import subprocess
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from host import wait_until


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class WebProgram:
    """`command` gets the port in its environment (PORT), and in its arguments in the place of {port}."""

    def __init__(self, command, log, **env):
        self.port = free_port()
        self.command = [argument.replace("{port}", str(self.port)) for argument in command]
        self.env = env
        self.log = log
        self.process = None

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, env={**self.env, "PORT": str(self.port)},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: listens(self.port) or self.process.poll() is not None, 30, f"{self.command} listens")
        if self.process.poll() is not None:
            raise AssertionError(f"{self.command} ended: {open(self.log, encoding='utf-8').read()[-2000:]}")
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()


class NotingProxy(ThreadingHTTPServer):
    """Hands every request on to a port and its answer back as it comes; `seen` holds (method, JSON-RPC method,
    headers)."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), _NotingHandler)
        self.target = port
        self.seen = []
        self.slow = 0  # calls of the tool that takes long
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]

    def handle_error(self, *_):
        pass  # a side that is gone


class _NotingHandler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def hand_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = body.split(b'"method":"', 1)[1].split(b'"', 1)[0].decode() if b'"method":"' in body else ""
        self.server.seen.append((self.command, name, dict(self.headers)))
        self.server.slow += b"trigger-long-running-operation" in body
        target = HTTPConnection("127.0.0.1", self.server.target)
        target.request(self.command, self.path, body or None, {**self.headers, "Connection": "close"})
        answer = target.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "keep-alive", "date", "server"):
                self.send_header(name, value)
        self.end_headers()
        while piece := answer.read1(65536):
            self.wfile.write(piece)
            self.wfile.flush()

    do_GET = do_POST = do_DELETE = hand_on
