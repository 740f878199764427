"""Bulkhead over HTTP on loopback, and a client that says exactly what a test wants it to. Python's standard library
only."""

import hashlib
import http.client
import json
import queue
import secrets
import signal
import subprocess
import threading
import urllib.parse

from host import patience, read
from instances import instance_of, instances_of

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
BOTH = "application/json, text/event-stream"


class HttpClient:
    """A client with a token (None: without) of the server at `port`; `tls`: how it speaks TLS."""

    tls = None

    def __init__(self, port, token, tls=None):
        self.port = port
        self.token = token
        self.tls = tls

    def ask(self, method="POST", message=None, headers=None, token=True, target="/mcp"):
        """One request on a connection of its own; see Answer."""
        return Answer(self, method, message, headers or {}, token, target)

    def ask_modern(self, id, method, params=None, meta=None, headers=None):
        params = dict(params or {})
        params["_meta"] = {"io.modelcontextprotocol/protocolVersion": MODERN,
                           "io.modelcontextprotocol/clientCapabilities": {}, **(meta or {})}
        all_headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **(headers or {})}
        if "name" in params:
            all_headers["Mcp-Name"] = params["name"]
        return self.ask(message=rpc(id, method, params), headers=all_headers)

    def run_modern(self, code, id=1, meta=None, **arguments):
        """Starts a run of code."""
        return self.ask_modern(id, "tools/call", {"name": "run_python", "arguments": {"code": code, **arguments}},
                               meta)

    def open_session(self):
        answer = self.ask(message=rpc(0, "initialize", {
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}))
        assert answer.status == 200, (answer.status, answer.text())
        return Session(self, answer.headers["Mcp-Session-Id"])


class HttpServer(HttpClient):
    """A `bulkhead conformance-server` in a world; `arguments` say who may use it (default: who has the token)."""

    def __init__(self, world, *arguments):
        self.world = world
        self.log = world.path("http-server.log")
        with open(self.log, "ab") as log:
            self.process = world.start_command("conformance-server", *arguments, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = first_line(self)
        token = None if arguments else self.process.stdout.readline().strip()
        super().__init__(urllib.parse.urlsplit(self.url).port, token)
        self.instance = instance_of(self.process.pid)
        world.instances.append(self.instance)

    def close(self):
        """Ends it as who started it does; its exit status."""
        self.process.stdin.close()
        return ended(self.process)


class TenantServer:
    """A `bulkhead serve` in a world, with these tenants: their tables in TOML by name. `of(NAME)` is a client."""

    def __init__(self, world, tenants, more="", **variables):
        self.world = world
        self.tenants = dict(tenants)
        self.more = more
        self.tokens = {}
        self.log = world.path("serve.log")
        self.variables = variables
        self.configure()
        self.start()

    def configure(self):
        """Writes the configuration as `tenants` and `more` are now."""
        text = 'listen = "127.0.0.1:0"\n' + self.more
        for name, table in self.tenants.items():
            token = self.tokens.setdefault(name, "bh_" + secrets.token_urlsafe(32))
            digest = hashlib.sha256(token.encode()).hexdigest()
            text += f'\n[tenants.{name}]\ntokens = [{{ id = "test", sha256 = "{digest}" }}]\n{table}'
        self.world.write_config("bulkhead.toml", text)
        self.world.settle()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = self.world.start_command("serve", stdout=subprocess.PIPE, stderr=log, text=True,
                                                    variables=self.variables)
        self.url = first_line(self)
        self.port = urllib.parse.urlsplit(self.url).port
        self.instances = instances_of(self.process.pid)
        self.world.instances.extend(self.instances)

    def of(self, name):
        return HttpClient(self.port, self.tokens[name])

    def state_of(self, name):
        return f"{self.world.state}/tenants/{name}"

    def log_text(self):
        return read(self.log)

    def stop(self, how=signal.SIGTERM):
        """Ends it by a signal; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return ended(self.process)

    def end_well(self):
        """The end of a test: the server ends well and leaves nothing. The world is closed whatever happens."""
        try:
            status = self.stop()
            if status != 0:
                raise AssertionError(f"the server ended with {status}: {self.log_text()[-3000:]}")
            for instance in self.instances:
                self.world.assert_clean(instance, alive=False)
        finally:
            self.world.close()


def first_line(server):
    url = server.process.stdout.readline().strip()
    if not url.startswith("http"):
        raise AssertionError(f"the server doesn't start: {read(server.log)[-2000:]}")
    return url


def ended(process):
    try:
        return process.wait(patience(40))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


class Session:
    """A session of the legacy era."""

    def __init__(self, server, id):
        self.server = server
        self.headers = {"Mcp-Session-Id": id, "MCP-Protocol-Version": LEGACY}
        assert self.tell("notifications/initialized").status == 202

    def ask(self, id, method, params=None):
        return self.server.ask(message=rpc(id, method, params or {}), headers=self.headers)

    def tell(self, method, params=None):
        return self.server.ask(message={"jsonrpc": "2.0", "method": method, "params": params or {}},
                               headers=self.headers)

    def run(self, code, id=1, progress=None, **arguments):
        meta = {} if progress is None else {"_meta": {"progressToken": progress}}
        return self.ask(id, "tools/call", {"name": "run_python", "arguments": {"code": code, **arguments}, **meta})

    def read(self, last_event=None):
        more = {} if last_event is None else {"Last-Event-ID": last_event}
        return self.server.ask("GET", headers={**self.headers, **more})

    def end(self):
        return self.server.ask("DELETE", headers=self.headers)


class Answer:
    """What the server answers: status and headers at once, then the body or, of a stream, its events."""

    def __init__(self, server, method, message, headers, token, target="/mcp"):
        options = {"timeout": patience(90), **({"context": server.tls} if server.tls else {})}
        kind = http.client.HTTPSConnection if server.tls else http.client.HTTPConnection
        self._connection = kind("127.0.0.1", server.port, **options)
        body = None if message is None else (message if isinstance(message, bytes) else json.dumps(message).encode())
        all_headers = {"Accept": BOTH, **({"Content-Type": "application/json"} if body is not None else {}),
                       **({"Authorization": f"Bearer {server.token}"} if token and server.token else {}), **headers}
        self._connection.request(method, target, body, all_headers)
        self._response = self._connection.getresponse()
        self.status = self._response.status
        self.headers = self._response.headers
        self.ids = []
        self._messages = None

    def text(self):
        return self._response.read().decode()

    def json(self):
        return json.loads(self.text())

    @property
    def is_stream(self):
        return self.headers.get("Content-Type", "") == "text/event-stream"

    def next_message(self, seconds=60):
        """The next message on the stream; None at its end."""
        if self._messages is None:
            self._messages = queue.Queue()
            threading.Thread(target=self._read, daemon=True).start()
        try:
            return self._messages.get(timeout=patience(seconds))
        except queue.Empty:
            raise AssertionError(f"nothing came on the stream within {seconds} s") from None

    def messages(self):
        """All messages until the end of the stream."""
        return list(iter(self.next_message, None))

    def response(self):
        """The answer proper, whatever its form."""
        return self.messages()[-1] if self.is_stream else self.json()

    def result(self):
        response = self.response()
        assert "result" in response, response
        return response["result"]

    def close(self):
        """Closes the connection, as a client does that wants no more."""
        self._connection.sock and self._connection.sock.shutdown(2)
        self._connection.close()

    def _read(self):
        try:
            for line in self._response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    self.ids.append(value)
                elif name == "data" and value:
                    self._messages.put(json.loads(value))
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self._messages.put(None)


def rpc(id, method, params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
