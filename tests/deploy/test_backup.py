"""The commands of the note on backups, as they stand there, on a state folder in use."""

import os
import re
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import unittest

from places import text_of
from debian_programs import program
from host import patience


def commands():
    note = text_of("deploy", "README.md").split("## Backup")[1]
    return re.search(r"```\n(.*?)```", note, re.S).group(1)


class Backup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bulkhead-backup-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.state, self.to = os.path.join(self.folder, "MCPs"), os.path.join(self.folder, "to")
        os.mkdir(self.to)

    def put(self, name, content="x"):
        path = os.path.join(self.state, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)

    def test_what_lasts_is_saved_and_what_does_not_is_not(self):
        kept = ["bulkhead.toml", "tenants/a/servers.json", "tenants/a/user_tools/user_tools.py",
                "tenants/a/user_tools/cache/notes", "tenants/a/user_tools/ledger.db", "tenants/a/tool-approvals", "tenants/a/credentials/1.json"]
        left = ["artifacts/1/stdout", "cache/documents/x", "tenants/a/artifacts/1/stdout", "tenants/a/cache/x"]
        for name in kept + left:
            self.put(name)
        # A writer that goes on, whose records are in the log beside the file.
        path = os.path.join(self.state, "tenants/a/ledger.db")
        database = sqlite3.connect(path)
        self.addCleanup(database.close)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE runs (id)")
        database.execute("INSERT INTO runs VALUES ('last')")
        database.commit()
        self.assertGreater(os.path.getsize(path + "-wal"), 0)

        # Code in a sandbox can name its files as it likes, and put what it likes into them.
        hostile = "tenants/a/user_tools/x'\n.shell touch owned/ledger.db"
        self.put(hostile)
        kept.append(hostile)

        # sqlite3 is run by its path, which tests may have to unpack.
        tools = os.path.dirname(program("sqlite3", "/usr/bin/sqlite3"))
        script = "set -e\n" + commands().replace("/var/lib/bulkhead/MCPs", self.state)
        self.assertIn(self.state, script)
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=patience(60),
                              env={"PATH": os.environ["PATH"] + ":" + tools, "to": self.to})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

        self.assertFalse(os.path.exists(os.path.join(self.state, "owned")))
        with tarfile.open(os.path.join(self.to, "state.tar")) as archive:
            names = {member.name.removeprefix("./") for member in archive if member.isfile()}
        self.assertEqual(names, set(kept))
        copy = sqlite3.connect(os.path.join(self.to, "tenants/a/ledger.db"))
        self.addCleanup(copy.close)
        self.assertEqual(copy.execute("SELECT id FROM runs").fetchall(), [("last",)])
