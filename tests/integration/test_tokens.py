"""`bulkhead token`: tokens are printed once, and the file keeps nothing that lets anybody in."""

import concurrent.futures
import datetime
import hashlib
import os
import re
import stat
import tomllib
import unittest

from host import account, is_root
from world import World

COMMENTED = """# Who may use this server.
listen = "127.0.0.1:9000"   # behind the proxy

[tenants.ali]   # Ali's
servers = ["files"]

[tenants.bob.limits]
memory = "256m"
"""


class Tokens(unittest.TestCase):
    def setUp(self):
        self.world = World()
        self.path = os.path.join(self.world.state, "bulkhead.toml")

    def tearDown(self):
        self.world.close()

    def write(self, text, mode=0o600):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        self.give(mode)

    def give(self, mode, owner=None):
        if is_root():
            os.chown(self.path, *(owner or (account().pw_uid, account().pw_gid)))
        os.chmod(self.path, mode)

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def tokens(self, tenant):
        return {each["id"]: each for each in tomllib.loads(self.text())["tenants"][tenant].get("tokens", [])}

    def token(self, *arguments, status=0, **variables):
        """Runs the command; what it printed."""
        done = self.world.command("token", *arguments, **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        self.said = done.stderr.decode()
        return done.stdout.decode()

    def made(self, *arguments, **options):
        """Makes a token; the token."""
        printed = self.token(*arguments, **options)
        self.assertRegex(printed, r"\Abh_[A-Za-z0-9_-]{43}\n\Z")
        return printed.strip()

    def assert_hash_of(self, token, stored):
        self.assertEqual(stored["sha256"], hashlib.sha256(token.encode()).hexdigest())

    def test_a_first_token_in_one_command(self):
        token = self.made("new", "ali", "--add-tenant")
        stored = self.tokens("ali")["token-1"]
        self.assert_hash_of(token, stored)
        self.assertNotIn(token[3:], self.text(), "the token itself is nowhere")
        self.assertNotIn(token, self.said)
        self.assertIn(self.path, self.said)
        info = os.stat(self.path)
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_uid), (0o600, account().pw_uid))
        self.assertEqual([name for name in os.listdir(self.world.state) if "toml" in name], ["bulkhead.toml"])

    def test_comments_and_layout_stay(self):
        self.write(COMMENTED, 0o640)
        for tenant in ("ali", "ali", "bob"):
            self.made("new", tenant)
        self.assertEqual(sorted(self.tokens("ali")), ["token-1", "token-2"])
        self.assertEqual(list(self.tokens("bob")), ["token-1"])
        lines = self.text().splitlines()
        for line in COMMENTED.splitlines():
            self.assertIn(line, lines)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
        for tenant, name in (("ali", "token-2"), ("bob", "token-1"), ("ali", "token-1")):
            self.assertIn(f'"{name}"', self.token("revoke", tenant, name))
        self.assertEqual((self.tokens("ali"), self.tokens("bob")), ({}, {}))

    def test_expiry(self):
        self.write(COMMENTED)
        self.made("new", "ali", "--id", "soon", "--expires", "90d")
        self.made("new", "ali", "--id", "date", "--expires", "2099-12-31")
        soon = self.tokens("ali")["soon"]["expires"] - datetime.datetime.now(datetime.timezone.utc)
        self.assertEqual(round(soon / datetime.timedelta(days=1)), 90)
        self.assertEqual(self.tokens("ali")["date"]["expires"],
                         datetime.datetime(2099, 12, 31, tzinfo=datetime.timezone.utc))
        for bad in ("2001-01-01", "0s", "tomorrow", "-5d", "5000w1", "9999-12-31"):
            self.token("new", "ali", "--id", "x", "--expires", bad, status=2)
            self.assertIn("--expires", self.said)
        self.assertNotIn("x", self.tokens("ali"))

    def test_list(self):
        self.write(COMMENTED)
        token = self.made("new", "ali", "--id", "laptop", "--expires", "2099-12-31")
        self.made("new", "bob", "--id", "ci")
        listed = self.token("list")
        self.assertRegex(listed, r"(?m)^ali  laptop  until 2099-12-31T00:00:00Z  [0-9a-f]{12}$")
        self.assertRegex(listed, r"(?m)^bob  ci  without an end  [0-9a-f]{12}$")
        self.assertNotIn(token[3:], listed)
        self.assertEqual(self.token("list", "bob"), "".join(re.findall(r"bob.*\n", listed)))
        self.write(self.text().replace("2099-12-31T", "2001-12-31T"))
        self.assertIn("expired", self.token("list", "ali"))

    def test_rotation(self):
        self.write(COMMENTED)
        first = self.made("new", "ali", "--id", "ci")
        second = self.made("rotate", "ali", "ci")
        self.assertNotEqual(first, second)
        self.assertEqual(list(self.tokens("ali")), ["ci"])
        self.assert_hash_of(second, self.tokens("ali")["ci"])
        third = self.made("rotate", "ali", "ci", "--grace", "1h", "--expires", "2099-01-01")
        stored = self.tokens("ali")
        self.assertEqual(sorted(stored), ["ci", "ci.1"])
        self.assert_hash_of(third, stored["ci"])
        self.assert_hash_of(second, stored["ci.1"])
        left = stored["ci.1"]["expires"] - datetime.datetime.now(datetime.timezone.utc)
        self.assertLessEqual(left, datetime.timedelta(hours=1))
        self.assertEqual(stored["ci"]["expires"].year, 2099)
        self.assertIn('"ci.1"', self.said)
        before = self.text()
        self.token("revoke", "ali", "ci")
        self.assertIn('"ci.1"', self.said, "the old one is valid still")
        self.assertIn("bulkhead token revoke ali ci.1", self.said)
        self.write(before)
        self.token("revoke", "ali", "ci.1")
        self.assertEqual(self.said, "")
        self.write(before)
        # Its time is over: the next rotation clears it away.
        self.write(re.sub(r'(id = "ci\.1".*expires = )[^ ]*', r"\g<1>2001-01-01", self.text()))
        self.made("rotate", "ali", "ci", "--grace", "1h")
        self.assertEqual(sorted(self.tokens("ali")), ["ci", "ci.2"])
        self.assertEqual(self.tokens("ali")["ci"]["expires"].year, 2099, "as the old one")

    def test_mistakes(self):
        self.write(COMMENTED)
        before = self.text()
        for arguments, status, word in ((("new", "alli"), 1, 'did you mean "ali"'), (("revoke", "ali", "x"), 1, '"x"'),
                                        (("rotate", "ali", "x"), 1, '"x"'), (("list", "eve"), 1, "--add-tenant"),
                                        (("new", "../x", "--add-tenant"), 2, "tenant"),
                                        (("new", "ali", "--id", "a b"), 2, "--id"), (("new",), 2, "TENANT"), ((), 2, ""),
                                        (("rotate", "ali", "x", "--grace", "soon"), 2, "--grace")):
            self.assertEqual(self.token(*arguments, status=status), "", arguments)
            self.assertIn(word, self.said)
        self.assertEqual(self.text(), before)
        os.remove(self.path)
        self.token("new", "ali", status=1)
        self.assertIn(self.path, self.said)
        self.write("[tenants.ali]\nmemry = 1\n")
        self.token("list", status=2)
        self.assertIn(f"{self.path}:2:", self.said)

    def test_a_file_that_is_to_be_edited_by_hand(self):
        self.write("tenants = { ali = {} }\n")
        token = self.made("new", "ali", "--id", "x", status=1)
        line, = re.findall(r"\{ id = .* \}", self.said)
        self.write(f"[tenants.ali]\ntokens = [\n{line}\n]\n")
        self.assert_hash_of(token, self.tokens("ali")["x"])
        self.assertIn("x", self.token("list", "ali"))

    def test_files_that_are_not_trusted_or_not_ours(self):
        self.write(COMMENTED, 0o666)
        self.assertEqual(self.token("new", "ali", status=1), "")
        self.assertIn("chmod o-w", self.said)
        self.write(COMMENTED)
        if is_root():  # root's file is believed, and stays root's
            self.give(0o644, (0, 0))
        else:
            self.give(0o400)
        self.made("new", "ali", status=1)
        self.assertIn("Permission denied", self.said)
        self.assertIn("sha256 = ", self.said)
        if is_root():
            self.assertIn(f'chown {account().pw_name} "{self.path}"', self.said)
        self.assertEqual(self.text(), COMMENTED)

    def test_which_file(self):
        self.write(COMMENTED)
        other = os.path.join(self.world.state, "other.toml")
        os.rename(self.path, other)
        self.made("new", "ali", "--config", other)
        self.made("new", "ali", "--config", "state/other.toml")
        self.made("new", "ali", MCP_BRIDGE_SERVE_CONFIG=other)
        os.symlink("other.toml", self.path)
        self.made("new", "ali")
        self.assertEqual(len(self.tokens("ali")), 4)
        self.assertTrue(os.path.islink(self.path))

    def test_many_at_once_lose_nothing(self):
        self.write(COMMENTED)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda n: self.world.command("token", "new", "ali", "--id", f"t{n}"), range(12)))
        self.assertEqual([each.returncode for each in done], [0] * 12, done)
        self.assertEqual(len(self.tokens("ali")), 12)


if __name__ == "__main__":
    unittest.main()
