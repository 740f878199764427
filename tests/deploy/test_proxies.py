"""The examples of reverse proxies, run before a server that tells what it was asked, and before Bulkhead: what clients
say and get must pass, at once and unchanged."""

import base64
import hashlib
import http.client
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from places import text_of
from debian_programs import program
from host import patience, read, wait_until
from world import World

NAME = "bulkhead.example.org"
LARGEST_BODY = (16 << 20) + (64 << 10)  # limits::line


class Backend(http.server.ThreadingHTTPServer):
    """Answers a POST to /stream with two events, the second when `go_on` is set, and all else with the size of the
    body; notes what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.go_on = threading.Event()
        self.gone = threading.Event()
        self.asked = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        size = int(self.headers["content-length"])
        body = self.rfile.read(size)
        self.server.asked.append((self.path, dict(self.headers)))
        if self.path == "/stream":
            self.stream()
            return
        self.answer(str(len(body)).encode())

    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        self.answer(b"ok")

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.event(b"data: first\n\n")
        deadline = time.monotonic() + patience(30)
        while not self.server.go_on.wait(0.05) and time.monotonic() < deadline:
            try:
                self.event(b": alive\n\n")
            except OSError:
                self.server.gone.set()
                self.close_connection = True
                return
        self.event(b"data: second\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Served:
    """`bulkhead serve` with one tenant, known by the example's name."""

    def __init__(self):
        self.world = World({})
        self.token = "bh_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
        digest = hashlib.sha256(self.token.encode()).hexdigest()
        self.world.write_config("bulkhead.toml", f'listen = "127.0.0.1:0"\nhosts = ["{NAME}"]\n[tenants.one]\n'
                                                 f'tokens = [{{ id = "test", sha256 = "{digest}" }}]\n')
        self.world.settle()
        self.log = self.world.path("serve.log")
        with open(self.log, "ab") as log:
            self.process = self.world.start_command("serve", "--config", self.world.path("state/bulkhead.toml"),
                                                    stdout=subprocess.PIPE, stderr=log, text=True)
        url = self.process.stdout.readline().strip()
        if not url:
            raise AssertionError(f"it doesn't start: {read(self.log)}")
        self.server_port = urllib.parse.urlsplit(url).port

    def shutdown(self):
        self.process.terminate()
        try:
            status = self.process.wait(patience(45))
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.world.close()
        if status != 0:
            raise AssertionError(f"it ended with {status}: {read(self.log)}")


class Proxy:
    """One proxy with its example, changed only in ports, certificate and name of the machine."""

    behind = Backend

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="bulkhead-proxy-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.backend = cls.behind()
        cls.addClassCleanup(cls.backend.shutdown)
        cls.port = free_port()
        cls.certificate, cls.key = os.path.join(cls.folder, "chain.pem"), os.path.join(cls.folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "1", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout",
                        cls.key, "-out", cls.certificate], check=True, capture_output=True, timeout=patience(30))
        check, serve = cls.commands()
        done = subprocess.run(check, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience(30))
        if done.returncode != 0:
            raise AssertionError(f"{check}: {done.stdout}{done.stderr}")
        cls.log = os.path.join(cls.folder, "log")
        with open(cls.log, "w", encoding="utf-8") as log:
            cls.process = subprocess.Popen(serve, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           env={**os.environ, "HOME": cls.folder, "XDG_DATA_HOME": cls.folder})
        cls.addClassCleanup(cls.stop)
        wait_until(cls.listens, 20, "the proxy listens")

    @classmethod
    def stop(cls):
        cls.process.terminate()
        try:
            cls.process.wait(patience(10))
        except subprocess.TimeoutExpired:
            cls.process.kill()
            cls.process.wait()

    @classmethod
    def listens(cls):
        if cls.process.poll() is not None:
            raise AssertionError(f"it ended: {read(cls.log)}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", cls.port)) == 0

    @classmethod
    def changed(cls, text, changes):
        """The example with the test's own places; each must stand in it."""
        for old, new in changes.items():
            if old not in text:
                raise AssertionError(f"the example has no {old!r}")
            text = text.replace(old, new)
        path = os.path.join(cls.folder, "example.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def setUp(self):
        trusting = ssl.create_default_context(cafile=self.certificate)
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=patience(20))
        self.connection = http.client.HTTPConnection(NAME)
        self.connection.sock = trusting.wrap_socket(raw, server_hostname=NAME)
        self.addCleanup(self.connection.close)

    def ask(self, method, path, body=None, **headers):
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()


class Passing(Proxy):
    """What passes, and how."""

    def setUp(self):
        self.backend.go_on.clear()
        self.backend.gone.clear()
        self.backend.asked.clear()
        super().setUp()

    def test_events_come_when_they_are_written(self):
        self.connection.request("POST", "/stream", b"{}")
        answer = self.connection.getresponse()
        # The second one isn't written before the first was read.
        self.assertEqual(answer.readline(), b"data: first\n")
        self.backend.go_on.set()
        self.assertIn(b"data: second\n", answer.read())

    def test_no_stream_ends_before_its_time(self):
        for _ in range(25):
            self.backend.go_on.clear()
            self.assertEqual(self.ask("POST", "/mcp", b"{}")[0], 200)
            self.connection.request("POST", "/stream", b'{"padding": "' + 300 * b"x" + b'"}')
            answer = self.connection.getresponse()
            self.assertEqual(answer.readline(), b"data: first\n")
            # The proxy has time to do wrong.
            time.sleep(0.1)
            self.backend.go_on.set()
            self.assertIn(b"data: second\n", answer.read())

    def test_a_client_that_leaves_is_missed(self):
        self.connection.request("POST", "/stream", b"{}")
        answer = self.connection.getresponse()
        self.assertEqual(answer.readline(), b"data: first\n")
        answer.close()
        self.connection.close()
        self.assertTrue(self.backend.gone.wait(patience(20)))

    def test_host_and_address_are_the_true_ones(self):
        status, _ = self.ask("POST", "/mcp", b"{}", **{"X-Forwarded-For": "203.0.113.9", "Authorization": "Bearer x"})
        self.assertEqual(status, 200)
        (path, headers), = self.backend.asked
        given = {name.lower(): value for name, value in headers.items()}
        self.assertEqual((path, given["host"]), ("/mcp", NAME))
        self.assertEqual(given["x-forwarded-for"], "127.0.0.1")
        self.assertEqual(given["x-forwarded-proto"], "https")
        self.assertEqual(given["authorization"], "Bearer x")

    def test_the_largest_body_passes(self):
        self.assertEqual(self.ask("POST", "/mcp", bytes(LARGEST_BODY)), (200, str(LARGEST_BODY).encode()))


class Serving(Proxy):
    """Bulkhead's clients reach it."""

    behind = Served

    def call(self, id, method, params, **headers):
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        self.connection.request("POST", "/mcp", body, {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.backend.token}", "Origin": f"https://{NAME}", **headers})
        return self.connection.getresponse()

    def initialize(self, **headers):
        return self.call(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                           "clientInfo": {"name": "test", "version": "1"}}, **headers)

    def test_a_run_and_what_it_writes_meanwhile(self):
        answer = self.initialize()
        self.assertEqual(answer.status, 200, answer.read())
        session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
        answer.read()
        code = "import time\nprint('early', flush=True)\ntime.sleep(3)\nprint('late')"
        answer = self.call(1, "tools/call", {"name": "run_python", "arguments": {"code": code},
                                             "_meta": {"progressToken": "p"}}, **session)
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
        messages = [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
        self.assertIn("result", messages[-1], messages)
        self.assertEqual(messages[-1]["result"]["structuredContent"]["stdout"], "early\nlate\n")
        self.assertTrue([each for each in messages[:-1] if "early" in json.dumps(each)])

    def test_no_figures_are_to_be_had(self):
        self.connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.backend.token}"})
        answer = self.connection.getresponse()
        self.assertEqual(answer.status, 404, answer.read())

    def test_who_is_refused_learns_it(self):
        for headers, status in (({"Authorization": "Bearer no"}, 401), ({"Origin": "https://evil.example"}, 403)):
            with self.subTest(headers):
                answer = self.initialize(**headers)
                self.assertEqual(answer.status, status, answer.read())
                answer.read()


class Nginx:
    @classmethod
    def commands(cls):
        example = cls.changed(text_of("deploy", "proxy", "nginx.conf"), {
            "listen 443": f"listen 127.0.0.1:{cls.port}",
            "127.0.0.1:8765": f"127.0.0.1:{cls.backend.server_port}",
            "/etc/ssl/bulkhead/fullchain.pem": cls.certificate, "/etc/ssl/bulkhead/privkey.pem": cls.key})
        main = os.path.join(cls.folder, "nginx.conf")
        places = "".join(f"{kind}_temp_path {cls.folder}/{kind};\n"
                         for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(main, "w", encoding="utf-8") as file:
            file.write(f"daemon off;\npid {cls.folder}/pid;\nworker_processes 1;\nevents {{}}\n"
                       + ("user root;\n" if os.geteuid() == 0 else "")
                       + f"http {{\naccess_log off;\n{places}include {example};\n}}\n")
        command = [program("nginx", "/usr/sbin/nginx"), "-e", "stderr", "-p", cls.folder, "-c", main]
        return [*command, "-t"], command


class NginxPassing(Nginx, Passing, unittest.TestCase):
    def test_a_larger_body_does_not_pass(self):
        try:
            self.connection.request("POST", "/mcp", bytes(LARGEST_BODY + (1 << 20)))
        except OSError:
            # It may be refused, and the connection closed, before all is sent.
            pass
        self.assertEqual(self.connection.getresponse().status, 413)
        self.assertEqual(self.backend.asked, [])


class NginxServing(Nginx, Serving, unittest.TestCase):
    pass


class Caddy:
    @classmethod
    def commands(cls):
        example = cls.changed(text_of("deploy", "proxy", "Caddyfile"), {
            f"\n{NAME} {{\n": "\n{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
                              f"{NAME}:{cls.port} {{\n\tbind 127.0.0.1\n\ttls {cls.certificate} {cls.key}\n",
            "127.0.0.1:8765": f"127.0.0.1:{cls.backend.server_port}"})
        caddy = program("caddy", "/usr/bin/caddy")
        options = ["--config", example, "--adapter", "caddyfile"]
        return [caddy, "validate", *options], [caddy, "run", *options]


class CaddyPassing(Caddy, Passing, unittest.TestCase):
    pass


class CaddyServing(Caddy, Serving, unittest.TestCase):
    pass
