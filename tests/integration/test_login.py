"""Servers behind OAuth: `bulkhead login` and `logout`, and calls with the tokens they leave. The authorization server and
the guarded MCP server are real ones on loopback (servers/oauth_server.py); the browser is a plain HTTP client."""

import glob
import json
import os
import re
import stat
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request

from host import patience
from world import HERE, World

sys.path.insert(0, os.path.join(HERE, "servers"))
from oauth_server import GuardedServer  # noqa: E402

CALL = "print(await mcp_guarded.whoami())"


def visit(url):
    """What a browser does with a page that sends it on at once: the status of where it ends."""
    try:
        with urllib.request.urlopen(url, timeout=patience(20)) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


class LoginTest(unittest.TestCase):
    def setUp(self):
        self.guard = GuardedServer()
        self.world = World({"guarded": {"type": "http", "url": self.guard.url},
                            "local": {"command": "/bin/true"}})

    def tearDown(self):
        self.world.close()
        self.guard.close()

    def log_in(self, *arguments, browse=visit, server="guarded", **variables):
        """Runs `bulkhead login`, with a browser that opens the page it prints; its status, stdout, stderr."""
        process = self.world.start_command("login", server, "--no-browser", *arguments, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, variables=variables)
        watchdog = threading.Timer(patience(90), process.kill)
        watchdog.start()
        said, self.visited = [], None
        try:
            for line in process.stderr:
                said.append(line)
                if line.startswith("  http"):
                    self.visited = browse(line.strip())
            return process.wait(), process.stdout.read(), "".join(said)
        finally:
            watchdog.cancel()
            process.stdout.close()
            process.stderr.close()

    def logged_in(self, *arguments, **options):
        status, out, said = self.log_in(*arguments, **options)
        self.assertEqual(status, 0, said)
        return out

    def assert_refused(self, outcome, *parts):
        status, out, said = outcome
        self.assertEqual((status, out), (1, ""), said)
        for part in parts:
            self.assertIn(part, said)
        self.assertEqual(self.credentials(), [])

    def credentials(self):
        return [json.load(open(path, encoding="utf-8"))
                for path in glob.glob(os.path.join(self.world.state, "credentials", "*.json"))]

    def call(self, code=CALL):
        script = self.world.path("script.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(code)
        return self.world.command("run", "--server", "guarded", script, seconds=120)

    def tools(self):
        done = self.world.command("servers", "--tools", "--json", seconds=60)
        row = next(row for row in json.loads(done.stdout)["servers"] if row["name"] == "guarded")
        return row.get("error") or [tool["name"] for tool in row["tools"]]


class LoggingIn(LoginTest):
    def test_a_login_lets_calls_through(self):
        out = self.logged_in()
        self.assertIn("Logged in to guarded at " + self.guard.issuer, out)
        self.assertEqual(self.visited, 200)
        done = self.call()
        self.assertEqual((done.returncode, done.stdout), (0, b"you are let in\n"), done.stderr)
        form = self.guard.forms[0]
        self.assertEqual(form["resource"], self.guard.url)
        self.assertNotIn("client_secret", form)

    def test_what_is_stored_is_for_the_account_alone_and_said_nowhere(self):
        _, out, said = self.log_in()
        folder = os.path.join(self.world.state, "credentials")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        for name in os.listdir(folder):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600, name)
        done = self.call("import os\nfor each in os.walk('/projects'): print(each)\n" + CALL)
        credential = self.credentials()[0]
        for text in (out, said, done.stdout.decode(), done.stderr.decode()):
            self.assertNotIn(credential["access_token"], text)
            self.assertNotIn(credential["refresh_token"], text)
        self.assertNotIn(b"credentials", done.stdout)

    def test_before_a_login_the_error_says_what_to_do(self):
        self.assertIn("bulkhead login guarded", self.tools())
        done = self.call()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"bulkhead login guarded", done.stderr)

    def test_a_login_counts_for_a_server_that_runs_already(self):
        client = self.world.client()
        code = "from mcp.runtime import MCPError\ntry:\n    " + CALL + "\nexcept MCPError as e:\n    print(e.message)\n"
        first = client.run(code, ["guarded"], wait=patience(90))
        self.assertIn("bulkhead login guarded", first["stdout"])
        self.logged_in()
        second = client.run(code, ["guarded"], wait=patience(90))
        self.assertEqual(second["stdout"], "you are let in\n")
        self.assertEqual(client.close(patience(20)), 0)

    def test_a_browser_is_started_with_the_url_as_its_only_argument(self):
        note = os.path.join(self.world.folder, "opened")
        browser = os.path.join(self.world.folder, "browser")
        with open(browser, "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/python3\nimport json, sys, urllib.request\n"
                       f"json.dump(sys.argv[1:], open({note!r}, 'w'))\n"
                       "urllib.request.urlopen(sys.argv[1]).read()\n")
        self.world.settle()
        os.chmod(browser, 0o755)
        done = self.world.command("login", "guarded", "--timeout", "60", BROWSER=browser, seconds=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(note, encoding="utf-8") as file:
            arguments = json.load(file)
        self.assertEqual(len(arguments), 1)
        self.assertTrue(arguments[0].startswith(self.guard.issuer + "/authorize?"))

    def test_a_server_that_is_not_configured_can_be_named_by_its_url(self):
        self.logged_in(server=self.guard.url)
        self.assertEqual(self.credentials()[0]["url"], self.guard.url)

    def test_servers_that_take_no_login(self):
        for server, part in (("local", "started by a command"), ("nobody", "no such server"),
                             ("file:///etc/passwd", "no such server")):
            with self.subTest(server):
                self.assert_refused(self.log_in(server=server), part)

    def test_logout_ends_the_login_on_both_sides(self):
        self.logged_in()
        done = self.world.command("logout", "guarded")
        self.assertEqual((done.returncode, done.stdout), (0, b"Logged out of guarded.\n"), done.stderr)
        self.assertEqual(self.credentials(), [])
        self.assertEqual(self.guard.refresh_tokens, {})
        done = self.world.command("logout", "guarded")
        self.assertEqual((done.returncode, done.stdout), (0, b"There was no login to guarded.\n"))

    def test_it_is_interrupted_and_gives_up_in_time(self):
        def interrupt(_):
            process.send_signal(2)
        process = self.world.start_command("login", "guarded", "--no-browser", stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if line.startswith("Waiting"):
                interrupt(line)
        self.assertEqual(process.wait(patience(20)), 130)
        process.stdout.close()
        process.stderr.close()
        self.assert_refused(self.log_in("--timeout", "1", browse=lambda url: None), "no answer came", "--timeout")


class Refreshing(LoginTest):
    def test_an_expired_token_is_refreshed_unseen(self):
        self.guard.lifetime = 0
        self.logged_in()
        self.assertEqual(self.tools(), ["whoami"])
        self.assertEqual(self.tools(), ["whoami"])
        grants = [form["grant_type"] for form in self.guard.forms]
        self.assertGreaterEqual(grants.count("refresh_token"), 2)
        self.assertEqual(self.guard.used_refresh_tokens,
                         {form["refresh_token"] for form in self.guard.forms if "refresh_token" in form})

    def test_a_token_that_the_server_refuses_is_refreshed(self):
        self.logged_in()
        self.guard.expire()
        self.assertEqual(self.tools(), ["whoami"])

    def test_processes_at_once_use_a_refresh_token_once(self):
        self.logged_in()
        self.guard.expire()
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.tools())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [["whoami"]] * 4)
        used = [form["refresh_token"] for form in self.guard.forms if "refresh_token" in form]
        self.assertEqual(len(used), len(set(used)))

    def test_a_revoked_login_says_so(self):
        self.logged_in()
        self.guard.expire()
        self.guard.refresh_tokens.clear()
        error = self.tools()
        self.assertIn("the login was revoked", error)
        self.assertIn("bulkhead login guarded", error)
        self.assertEqual(self.credentials(), [])
        self.logged_in()
        self.assertEqual(self.tools(), ["whoami"])

    def test_a_server_that_wants_more_is_asked_for_more(self):
        self.guard.faults["needs"] = "write"
        self.logged_in()
        done = self.call()
        self.assertIn(b"bulkhead login guarded", done.stderr)
        self.logged_in()
        self.assertEqual(set(self.credentials()[0]["scope"].split()), {"read", "write"})
        done = self.call()
        self.assertEqual((done.returncode, done.stdout), (0, b"you are let in\n"), done.stderr)


class Attacks(LoginTest):
    def test_answers_that_do_not_fit(self):
        for answer, parts in (({"iss": "http://127.0.0.1:1"}, ["another authorization server"]),
                              ({"iss": None}, ["doesn't say which authorization server"]),
                              ({"code": None, "error": "access_denied"}, ["access_denied"]),
                              ({"code": "of-another-login"}, ["invalid_grant"])):
            with self.subTest(answer):
                self.guard.faults = {"answer": answer}
                self.assert_refused(self.log_in(), *parts)

    def test_an_answer_with_another_state_is_not_one(self):
        self.guard.faults = {"answer": {"state": "forged"}}
        outcome = self.log_in("--timeout", "2")
        self.assertEqual(self.visited, 400)
        self.assert_refused(outcome, "don't belong to this login")
        self.assertEqual(self.guard.forms, [])

    def test_after_a_forged_answer_the_real_one_counts(self):
        def browse(url):
            redirect = re.search(r"redirect_uri=([^&]+)", url).group(1)
            forged = urllib.request.unquote(redirect) + "?code=evil&state=forged"
            return visit(forged), visit(url)
        self.logged_in(browse=browse)
        self.assertEqual(self.visited, (400, 200))

    def test_metadata_that_does_not_fit_is_not_followed(self):
        for faults, part in (({"resource": {"resource": "https://evil.example/mcp"}}, "another resource"),
                             ({"issuer": {"issuer": "https://evil.example"}}, "evil.example"),
                             ({"issuer": {"code_challenge_methods_supported": ["plain"]}}, "PKCE"),
                             ({"issuer": {"token_endpoint": "http://evil.example/token"}}, "https"),
                             ({"issuer": {"authorization_endpoint": "file:///etc/passwd"}}, "http"),
                             ({"resource": {"authorization_servers": ["javascript:alert(1)"]}}, "http")):
            with self.subTest(faults):
                self.guard.faults = faults
                outcome = self.log_in()
                self.assertIsNone(self.visited)
                self.assert_refused(outcome, part)

    def test_a_token_follows_no_redirect_to_another_host(self):
        self.logged_in()
        other = GuardedServer()
        try:
            self.guard.faults = {"redirect": other.url}
            self.tools()
            self.assertEqual([token for token in other.seen_tokens if token], [])
        finally:
            other.close()

    def test_a_login_is_for_one_server_alone(self):
        self.logged_in()
        other = GuardedServer()
        try:
            self.world.write_config("servers.json", {"mcpServers": {"guarded": {"type": "http", "url": other.url}}})
            self.assertIn("bulkhead login guarded", self.tools())
            self.assertEqual([token for token in other.seen_tokens if token], [])
        finally:
            other.close()


if __name__ == "__main__":
    unittest.main()
