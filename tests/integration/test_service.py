"""`bulkhead serve` as a service: the socket comes from systemd, notices go to its manager, TLS is spoken, and the
certificate is renewed while it runs."""

import os
import signal
import socket
import ssl
import subprocess
import unittest

from host import patience, read, wait_until
from http_server import HttpClient, TenantServer
from instances import instances_of
from world import BINARY, World

WATCHDOG_SECONDS = 3


class FakeManager:
    """Where a service manager gets notices, under a name that is no file."""

    def __init__(self):
        self.name = f"@bulkhead-test-{os.getpid()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.name[1:])
        self._socket.settimeout(patience(60))

    def wait_for(self, line):
        """The next notice that has the line."""
        while True:
            notice = self._socket.recv(4096).decode().splitlines()
            if line in notice:
                return notice

    def close(self):
        self._socket.close()


class ActivatedServer(TenantServer):
    """Started by systemd-socket-activate when the first client connects."""

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # A shell's exported functions have names that systemd-socket-activate refuses.
        passed = [part for name, value in self.world.environment(**self.variables).items() if name.isidentifier()
                  for part in ("-E", f"{name}={value}")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["systemd-socket-activate", "-l", f"127.0.0.1:{self.port}", "--fdname=http", *passed, BINARY, "serve"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.world.folder)
        self.instances = []
        wait_until(self.wake, 20, "systemd listens")

    def wake(self):
        """A client comes, and waits in the socket's queue until it is served."""
        if self.process.poll() is not None:
            raise AssertionError(f"systemd-socket-activate ended: {self.log_text()[-2000:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port)):
                return True
        except ConnectionRefusedError:
            return False

    def started(self):
        self.url = self.process.stdout.readline().strip()
        self.instances = instances_of(self.process.pid)
        self.world.instances.extend(self.instances)


class Service(unittest.TestCase):
    def setUp(self):
        self.world = World({})
        self.manager = FakeManager()
        self.make_certificate("first")
        self.server = ActivatedServer(
            self.world, {"ann": ""}, f'[tls]\ncertificate = "{self.world.path("cert.pem")}"\n'
            f'key = "{self.world.path("key.pem")}"\n',
            NOTIFY_SOCKET=self.manager.name, WATCHDOG_USEC=str(WATCHDOG_SECONDS * 1_000_000))

    def tearDown(self):
        self.server.stop(signal.SIGKILL)
        self.manager.close()
        self.world.close()

    def make_certificate(self, name):
        """Makes it the server's; whoever made it is believed by `client(NAME)` alone."""
        made, key = self.world.path(f"{name}.pem"), self.world.path(f"{name}.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", key,
                        "-out", made], check=True, capture_output=True, timeout=patience(30))
        self.install(made, key)

    def install(self, certificate, key):
        for path, name in ((certificate, "cert.pem"), (key, "key.pem")):
            with open(self.world.path(f"{name}.new"), "w", encoding="utf-8") as file:
                file.write(read(path))
            os.rename(self.world.path(f"{name}.new"), self.world.path(name))
        self.world.settle()

    def client(self, name):
        return HttpClient(self.server.port, self.server.tokens["ann"],
                          ssl.create_default_context(cafile=self.world.path(f"{name}.pem")))

    def serves_as(self, name):
        try:
            return self.client(name).ask_modern(1, "tools/list").status == 200
        except ssl.SSLCertVerificationError:
            return False

    def test_from_the_first_connection_to_the_last_notice(self):
        ready = self.manager.wait_for("READY=1")
        self.assertIn("STATUS=serving 1 tenants", ready)
        self.server.started()
        self.assertEqual(self.server.url, f"https://127.0.0.1:{self.server.port}/mcp")
        answer = self.client("first").run_modern("print(6 * 7)").result()["structuredContent"]
        self.assertEqual(answer["stdout"], "42\n")
        for _ in range(3):
            self.manager.wait_for("WATCHDOG=1")

        self.make_certificate("second")
        wait_until(lambda: self.serves_as("second"), 30, "the new certificate is noticed")
        self.assertFalse(self.serves_as("first"))
        wait_until(lambda: "new connections get the certificate" in self.server.log_text(), 20, "the log tells")

        kept = "the certificate stays as it was"
        before = self.server.log_text().count(kept)
        self.install(self.world.path("first.pem"), self.world.path("second.key"))
        self.server.process.send_signal(signal.SIGHUP)
        self.manager.wait_for("RELOADING=1")
        self.manager.wait_for("READY=1")
        wait_until(lambda: self.server.log_text().count(kept) > before, 20, "the log tells why")
        self.assertIn("doesn't belong to the certificate", self.server.log_text())
        self.assertTrue(self.serves_as("second"))

        self.server.process.send_signal(signal.SIGTERM)
        self.manager.wait_for("STOPPING=1")
        self.assertEqual(self.server.stop(), 0, self.server.log_text()[-3000:])
        for instance in self.server.instances:
            self.world.assert_clean(instance, alive=False)
