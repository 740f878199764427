"""A protected MCP server (Streamable HTTP, 2025-11-25) and the authorization server that guards it, each on a port of
loopback, in threads of the test. Python's standard library only.

The authorization server is strict: PKCE, exact redirect URIs, codes and refresh tokens that work once (a refresh token
used twice ends the login, as RFC 9700 wants it). What a test sets in `faults` makes them misbehave."""

import base64
import hashlib
import json
import secrets
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", content_type="application/json", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if data:
            self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def form(self):
        return dict(urllib.parse.parse_qsl(self.body().decode(), keep_blank_values=True))


class AuthorizationHandler(Handler):
    def do_GET(self):
        guard = self.server.guard
        path, _, query = self.path.partition("?")
        guard.requests.append(("GET", self.path))
        if path == "/.well-known/oauth-authorization-server":
            self.answer(200, guard.issuer_metadata())
        elif path == "/authorize":
            self.authorize(dict(urllib.parse.parse_qsl(query)))
        else:
            self.answer(404, b"<html>not here</html>", "text/html")

    def authorize(self, asked):
        guard = self.server.guard
        if asked.get("redirect_uri") not in guard.clients.get(asked.get("client_id"), []):
            self.answer(400, b"redirect_uri", "text/plain")
            return
        code = secrets.token_hex(16)
        guard.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": guard.issuer}
        back.update(guard.faults.get("answer", {}))
        location = asked["redirect_uri"] + "?" + urllib.parse.urlencode(
            {name: value for name, value in back.items() if value is not None})
        self.answer(302, Location=location)

    def do_POST(self):
        guard = self.server.guard
        guard.requests.append(("POST", self.path))
        if self.path == "/register":
            client = "client-" + secrets.token_hex(4)
            asked = json.loads(self.body())
            guard.clients[client] = asked["redirect_uris"]
            self.answer(201, {**asked, "client_id": client})
        elif self.path == "/token":
            self.answer(*guard.token(self.form()), Cache_Control="no-store")
        elif self.path == "/revoke":
            guard.revoke(self.form().get("token"))
            self.answer(200)
        else:
            self.answer(404)


class ResourceHandler(Handler):
    def do_GET(self):
        guard = self.server.guard
        if self.path == guard.faults.get("metadata_path", "/.well-known/oauth-protected-resource/mcp"):
            self.answer(200, guard.resource_metadata())
        else:
            self.answer(405 if self.path == "/mcp" else 404)

    def do_DELETE(self):
        self.answer(405)

    def do_POST(self):
        guard = self.server.guard
        message = json.loads(self.body())
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        guard.seen_tokens.append(token)
        place = guard.resource_url.removesuffix("/mcp") + guard.faults.get(
            "metadata_path", "/.well-known/oauth-protected-resource/mcp")
        redirect = guard.faults.get("redirect")
        if redirect:
            self.answer(307, Location=redirect)
        elif token not in guard.tokens:
            self.answer(401, {"error": "invalid_token"},
                        WWW_Authenticate=f'Bearer resource_metadata="{place}", scope="read"')
        elif message.get("method") == "tools/call" and "write" in guard.faults.get("needs", "") and \
                "write" not in guard.tokens[token]["scope"]:
            self.answer(403, {"error": "insufficient_scope"},
                        WWW_Authenticate=f'Bearer error="insufficient_scope", scope="write", resource_metadata="{place}"')
        elif "id" not in message:
            self.answer(202)
        else:
            self.reply(message)

    def reply(self, message):
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "guarded", "version": "1"}},
            "tools/list": {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "you are let in"}]},
            "ping": {},
        }
        result = results.get(message["method"])
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            self.answer(404, {**answer, "error": {"code": -32601, "message": "no such method"}})
        else:
            self.answer(200, {**answer, "result": result})


class GuardedServer:
    """Both servers; `url` is the MCP server's."""

    def __init__(self):
        self.faults = {}
        self.lifetime = 3600
        self.clients, self.codes, self.tokens, self.refresh_tokens = {}, {}, {}, {}
        self.used_refresh_tokens, self.requests, self.forms, self.seen_tokens = set(), [], [], []
        self.lock = threading.Lock()
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler)
                        for handler in (AuthorizationHandler, ResourceHandler)]
        for server in self.servers:
            server.guard = self
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.issuer = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.resource_url = self.url = f"http://127.0.0.1:{self.servers[1].server_port}/mcp"

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def issuer_metadata(self):
        return {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize",
                "token_endpoint": self.issuer + "/token", "registration_endpoint": self.issuer + "/register",
                "revocation_endpoint": self.issuer + "/revoke", "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True, **self.faults.get("issuer", {})}

    def resource_metadata(self):
        return {"resource": self.resource_url, "authorization_servers": [self.issuer],
                **self.faults.get("resource", {})}

    def token(self, form):
        with self.lock:
            self.forms.append(form)
            if form.get("grant_type") == "authorization_code":
                asked = self.codes.pop(form.get("code"), None)
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if asked is None or challenge != asked["code_challenge"] or \
                        form.get("redirect_uri") != asked["redirect_uri"] or \
                        form.get("client_id") != asked["client_id"] or form.get("resource") != asked["resource"]:
                    return 400, {"error": "invalid_grant"}
                return self.grant(asked["client_id"], asked.get("scope", ""))
            old = form.get("refresh_token")
            if old in self.used_refresh_tokens:
                # Somebody has a copy: nobody gets anything any more.
                self.refresh_tokens.clear()
                self.tokens.clear()
            known = self.refresh_tokens.pop(old, None)
            if known is None or known["client"] != form.get("client_id"):
                return 400, {"error": "invalid_grant", "error_description": "the login was revoked"}
            self.used_refresh_tokens.add(old)
            return self.grant(known["client"], known["scope"])

    def grant(self, client, scope):
        token, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens[token] = self.refresh_tokens[refresh] = {"client": client, "scope": scope}
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime,
                     "refresh_token": refresh, "scope": scope}

    def revoke(self, token):
        with self.lock:
            self.refresh_tokens.pop(token, None)
            self.tokens.clear()

    def expire(self):
        """The access tokens that were given are refused from now on."""
        with self.lock:
            self.tokens.clear()
