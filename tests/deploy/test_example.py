"""The example of a configuration: it is TOML, with what is commented out, too, and the program takes it."""

import re
import tomllib
import unittest

from places import text_of
from host import read
from world import World


def with_defaults(text):
    """The example with its commented keys and tables in force."""
    return re.sub(r"^# ((?:\[\w+\]|\[\[[\w.]+\]\]|\w+ = .*))$", r"\1", text, flags=re.M)


class Example(unittest.TestCase):
    text = text_of("deploy", "examples", "bulkhead.toml")

    def test_it_is_read_by_others_too(self):
        read = tomllib.loads(self.text)
        self.assertEqual(set(read["tenants"]), {"research", "ci"})
        full = tomllib.loads(with_defaults(self.text))
        self.assertIn("certificate", full["tls"])
        self.assertIn("tenant_claim", full["oauth"]["issuers"][0])
        self.assertIn("pids", full["tenants"]["research"]["limits"])

    def test_the_program_takes_it(self):
        world = World({})
        self.addCleanup(world.close)
        for name, text in (("example.toml", self.text), ("full.toml", with_defaults(self.text))):
            with self.subTest(name):
                world.write_config(name, text)
                world.settle()
                config = world.path("state/" + name)
                for id in ("laptop", "nightly-job"):
                    done = world.command("token", "new", "research", "--id", id, "--config", config)
                    self.assertEqual(done.returncode, 0, done.stderr)
                done = world.command("token", "list", "research", "--config", config)
                self.assertEqual([line.split()[1] for line in done.stdout.decode().splitlines()],
                                 ["laptop", "nightly-job"])
                lines = read(config).splitlines()
                for line in text.splitlines():
                    self.assertTrue(line in lines or line == "tokens = []", line)

    def test_the_program_would_not_take_a_misspelt_one(self):
        world = World({})
        self.addCleanup(world.close)
        world.write_config("example.toml", self.text.replace("tool_calls", "toolcalls"))
        world.settle()
        done = world.command("token", "list", "--config", world.path("state/example.toml"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"toolcalls", done.stderr)
