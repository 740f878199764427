"""The scripts: shellcheck has no warning, and each says what it does."""

import glob
import os
import subprocess
import unittest

from places import DEPLOY, HERE, ROOT
from debian_programs import program
from host import patience


class Scripts(unittest.TestCase):
    scripts = sorted([*glob.glob(os.path.join(DEPLOY, "**", "*.sh"), recursive=True),
                      *glob.glob(os.path.join(HERE, "*.sh")), os.path.join(ROOT, ".ci", "run")])

    def test_shellcheck_has_no_warning(self):
        self.assertGreater(len(self.scripts), 6)
        done = subprocess.run([program("shellcheck", "/usr/bin/shellcheck"), "-S", "warning", *self.scripts],
                              capture_output=True, text=True, timeout=patience(120))
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_help_says_what_they_do(self):
        for script in ("setup.sh", "quickstart.sh", "test.sh", "systemd/install.sh"):
            with self.subTest(script):
                done = subprocess.run(["bash", os.path.join(DEPLOY, script), "--help"], capture_output=True, text=True,
                                      timeout=patience(20))
                self.assertEqual(done.returncode, 0, done.stderr)
                # Its own head, without what comes after it.
                self.assertGreater(len(done.stdout.splitlines()), 1)
                self.assertNotIn("set -", done.stdout)
