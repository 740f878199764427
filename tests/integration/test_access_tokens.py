"""`bulkhead serve` as an OAuth resource server: who has a token of the authorization server is let in as the tenant that
it names, and nobody else."""

import base64
import concurrent.futures
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time
import unittest

from host import patience, wait_until
from http_server import HttpClient, TenantServer
from world import World

RESOURCE = "https://mcp.example.org/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource/mcp"
METADATA = "https://mcp.example.org" + METADATA_PATH


def encoded(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """An RSA key of openssl's, in a folder of the test."""

    def __init__(self, folder, id):
        self.id = id
        # Another may have the same id.
        descriptor, self.path = tempfile.mkstemp(prefix="key-", dir=folder)
        os.close(descriptor)
        self.openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.path)

    @staticmethod
    def openssl(*arguments, input=None):
        return subprocess.run(["openssl", *arguments], input=input, check=True, capture_output=True,
                              timeout=patience(60)).stdout

    def public(self):
        modulus = self.openssl("rsa", "-in", self.path, "-noout", "-modulus").split(b"=")[1].strip()
        return {"kty": "RSA", "kid": self.id, "use": "sig", "n": encoded(bytes.fromhex(modulus.decode())), "e": "AQAB"}

    def sign(self, header, claims):
        text = f"{encoded(header)}.{encoded(claims)}"
        return f"{text}.{encoded(self.openssl('dgst', '-sha256', '-sign', self.path, input=text.encode()))}"


class AuthorizationServer:
    """Metadata and keys, on loopback; counts how often the keys are asked for."""

    def __init__(self):
        self.keys = []
        self.fetched = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = outer.answer(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path):
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.issuer, "jwks_uri": self.issuer + "/keys"}
        if path == "/keys":
            self.fetched += 1
            return {"keys": [each.public() for each in self.keys]}
        return None

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class AccessTokenTest(unittest.TestCase):
    """A server for two tenants, with an authorization server of its own."""

    @classmethod
    def setUpClass(cls):
        cls.world = World()
        cls.authority = AuthorizationServer()
        cls.key = Key(cls.world.folder, "first")
        cls.authority.keys = [cls.key]
        cls.oauth = (f'[oauth]\nresource = "{RESOURCE}"\nscopes = ["mcp"]\n[[oauth.issuers]]\n'
                     f'issuer = "{cls.authority.issuer}"\ntenant_claim = "team"\nprivate_network = true\n')
        cls.server = TenantServer(cls.world, {"ali": "", "bob": ""}, cls.oauth)
        wait_until(lambda: cls.authority.fetched, 20, "the keys are fetched")

    @classmethod
    def tearDownClass(cls):
        try:
            status = cls.server.stop()
            if status != 0:
                raise AssertionError(f"the server ended with {status}: {cls.server.log_text()[-2000:]}")
        finally:
            cls.authority.close()
            cls.world.close()

    def claims(self, **changes):
        claims = {"iss": self.authority.issuer, "aud": RESOURCE, "exp": int(time.time()) + 600, "scope": "mcp",
                  "team": "ali", "sub": "user-1", **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key=None, header=None, **changes):
        key = key or self.key
        return key.sign({"alg": "RS256", "kid": key.id, **(header or {})}, self.claims(**changes))

    def ask(self, token):
        return HttpClient(self.server.port, token).ask_modern(1, "server/discover")

    def wait_for(self, status, token, seconds, what):
        wait_until(lambda: self.ask(token).status == status, seconds, what)


class AccessTokens(AccessTokenTest):
    def test_a_good_token(self):
        self.wait_for(200, self.token(), 20, "the token is good, once its key has come")
        self.assertEqual(self.ask(self.server.tokens["ali"]).status, 200, "our own tokens count, too")

    def test_whoever_it_names_is_who_asks(self):
        run = HttpClient(self.server.port, self.token(team="bob")).run_modern("x = 20", session="new")
        session = run.result()["structuredContent"]["session"]
        again = self.server.of("bob").run_modern("print(x + 1)", session=session).result()["structuredContent"]
        self.assertEqual(again["stdout"], "21\n", "the same tenant by either kind of token")
        other = HttpClient(self.server.port, self.token(team="ali")).run_modern("print(x)", session=session)
        self.assertEqual(other.result()["structuredContent"]["status"], "session_lost")

    def test_tokens_that_let_nobody_in(self):
        other = Key(self.world.folder, "other")
        foreign = Key(self.world.folder, "first")  # of the same id
        unsigned = f"{encoded({'alg': 'none', 'kid': 'first'})}.{encoded(self.claims())}."
        for name, token in {"expired": self.token(exp=int(time.time()) - 60), "another's": self.token(foreign),
                            "another server": self.token(aud="https://other.example/mcp"),
                            "another issuer": self.token(iss="https://evil.example"), "unsigned": unsigned,
                            "no tenant": self.token(team="../bob"), "its own key": self.token(other, {"kid": "first"}),
                            "with jku": self.token(other, {"kid": "first", "jku": "https://evil.example/keys"}),
                            "symmetric": self.token(header={"alg": "HS256"}), "no expiry": self.token(exp=None)}.items():
            with self.subTest(name):
                answer = self.ask(token)
                self.assertEqual(answer.status, 401)
                self.assertEqual(answer.headers["WWW-Authenticate"],
                                 f'Bearer error="invalid_token", resource_metadata="{METADATA}"')
        self.assertEqual(self.ask(self.token(team="eve")).status, 403, "a tenant that there isn't")
        self.assertNotIn(self.token().split(".")[1], self.server.log_text())

    def test_refusals_are_in_the_log_but_not_the_tokens_nor_all_of_them(self):
        token = self.token(exp=int(time.time()) - 600)
        for _ in range(60):
            self.assertEqual(self.ask(token).status, 401)
        lines = [line for line in self.server.log_text().splitlines() if "an access token is refused" in line]
        self.assertTrue(lines)
        self.assertLess(len(lines), 60)
        for part in token.split("."):
            self.assertNotIn(part, self.server.log_text())

    def test_tenants_that_are_not_there_have_one_rate_together(self):
        tokens = [self.token(team=f"made-up-{number}") for number in range(4)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda number: self.ask(tokens[number % 4]).status, range(400)))
        self.assertEqual(set(statuses), {403, 429})
        self.assertEqual(self.ask(self.token()).status, 200, "others don't notice")

    def test_missing_scopes(self):
        answer = self.ask(self.token(scope="openid"))
        self.assertEqual(answer.status, 403)
        self.assertIn('error="insufficient_scope", scope="mcp"', answer.headers["WWW-Authenticate"])

    def test_what_clients_are_told(self):
        client = HttpClient(self.server.port, None)
        answer = client.ask()
        self.assertEqual(answer.status, 401)
        self.assertEqual(answer.headers["WWW-Authenticate"], f'Bearer scope="mcp", resource_metadata="{METADATA}"')
        for path in (METADATA_PATH, "/.well-known/oauth-protected-resource"):
            document = client.ask("GET", target=path)
            self.assertEqual(document.status, 200)
            self.assertEqual(document.json(), {"resource": RESOURCE, "authorization_servers": [self.authority.issuer],
                                               "scopes_supported": ["mcp"], "bearer_methods_supported": ["header"]})
        self.assertEqual(client.ask("GET", target="/.well-known/oauth-protected-resource/other").status, 404)

    def test_a_change_of_the_configuration(self):
        token = self.token()
        self.wait_for(200, token, 20, "the token is good")
        self.server.more = ""
        self.server.configure()
        self.wait_for(401, token, 20, "no authorization server counts any more")
        self.assertEqual(HttpClient(self.server.port, None).ask("GET", target=METADATA_PATH).status, 404)
        self.server.more = self.oauth
        self.server.configure()
        self.wait_for(200, token, 20, "it counts again")


class NewKeys(AccessTokenTest):
    def test_a_new_key_is_fetched_once(self):
        good = self.token()
        self.wait_for(200, good, 20, "the token is good")
        before = self.authority.fetched
        new = Key(self.world.folder, "new")
        unknown = self.token(new)
        # Keys were fetched just now, so that it takes half a minute until they may be again.
        self.wait_for(503, unknown, 45, "the keys are asked for")
        self.wait_for(401, unknown, 20, "it isn't among them")
        for _ in range(20):
            self.assertEqual(self.ask(unknown).status, 401)
        self.assertEqual(self.authority.fetched, before + 1)
        self.authority.keys = [self.key, new]
        self.assertEqual(self.ask(good).status, 200, "others don't notice")
        self.wait_for(200, unknown, 60, "the new key counts")


if __name__ == "__main__":
    unittest.main()
