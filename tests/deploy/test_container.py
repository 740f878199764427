"""The container's files: what they name is there, and they agree with each other. Nothing is built here, for that needs
an image of Debian from a registry."""

import fnmatch
import json
import os
import re
import subprocess
import sys
import unittest

from places import DEPLOY, ROOT, text_of, variable_of_setup
from debian_programs import program
from host import patience

CONTAINER = os.path.join(DEPLOY, "container")
INSTRUCTIONS = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "ENTRYPOINT"}


def instructions():
    """The Containerfile's instructions as (word, rest), comments out and lines joined."""
    text = re.sub(r"^#.*\n", "", text_of("deploy", "container", "Containerfile"), flags=re.M)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield word, " ".join(rest.split())


def yaml_of(path):
    """A YAML file, read by Debian's PyYAML."""
    module = program("python3-yaml", "/usr/lib/python3/dist-packages/yaml/__init__.py", os.R_OK)
    script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=patience(30),
                          env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(module))})
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Container(unittest.TestCase):
    def test_each_instruction_is_one(self):
        self.assertLessEqual({word for word, _ in instructions()}, INSTRUCTIONS)

    def test_what_is_copied_is_there(self):
        stages = {rest.split(" AS ")[1] for word, rest in instructions() if word == "FROM" and " AS " in rest}
        ignored = text_of(".dockerignore").split()
        for word, rest in instructions():
            if word != "COPY":
                continue
            with self.subTest(rest):
                first, *others = rest.split()
                if first.startswith("--from="):
                    self.assertIn(first.removeprefix("--from="), stages)
                    continue
                for source in [first, *others][:-1]:
                    self.assertTrue(os.path.exists(os.path.join(ROOT, source)))
                    self.assertFalse([pattern for pattern in ignored if fnmatch.fnmatch(source, pattern)])

    def test_the_account_is_that_of_the_setup(self):
        told = dict((word, rest) for word, rest in instructions() if word in ("USER", "VOLUME", "ENV"))
        home, runtime = variable_of_setup("account_home"), variable_of_setup("account_runtime")
        self.assertEqual((told["USER"], told["VOLUME"]), (variable_of_setup("account"), home))
        self.assertIn(f"HOME={home} ", told["ENV"])
        self.assertIn(f"XDG_RUNTIME_DIR={runtime} ", told["ENV"])
        (made,) = [rest for word, rest in instructions() if word == "RUN" and "useradd" in rest]
        self.assertIn(f"--home-dir {home} ", made)

    def test_the_shell_takes_the_scripts(self):
        scripts = [rest for word, rest in instructions() if word == "RUN"]
        self.assertEqual(len(scripts), 3)
        for script in [*scripts, text_of("deploy", "container", "start.sh")]:
            done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, timeout=patience(10))
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)

    def test_without_a_configuration_it_does_not_start(self):
        done = subprocess.run(["sh", os.path.join(CONTAINER, "start.sh")], capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, timeout=patience(10))
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent/MCPs/bulkhead.toml", done.stderr)


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = yaml_of(os.path.join(CONTAINER, "compose.yaml"))["services"]["bulkhead"]

    def test_it_builds_the_containerfile(self):
        context = os.path.normpath(os.path.join(CONTAINER, self.service["build"]["context"]))
        self.assertEqual(context, ROOT)
        self.assertTrue(os.path.exists(os.path.join(context, self.service["build"]["dockerfile"])))

    def test_what_it_allows_is_what_the_containerfile_explains(self):
        explained = set(re.findall(r"^#   --security-opt (\S+)", text_of("deploy", "container", "Containerfile"), re.M))
        self.assertEqual(set(self.service["security_opt"]), explained)
        self.assertEqual(self.service["devices"], ["/dev/fuse"])
        self.assertFalse({"privileged", "cap_add", "network_mode", "pid", "userns_mode"} & set(self.service))

    def test_it_fits_the_image(self):
        text = text_of("deploy", "container", "Containerfile")
        self.assertEqual(self.service["volumes"], ["state:" + variable_of_setup("account_home")])
        port = re.search(r"^EXPOSE (\d+)$", text, re.M).group(1)
        self.assertEqual(self.service["ports"], [f"127.0.0.1:{port}:{port}"])
        self.assertIn(f":{port} ", text_of("deploy", "container", "start.sh"))
        self.assertIn(f":{port}/", self.service["healthcheck"]["test"][-1])

    def test_it_waits_as_long_as_the_unit_does(self):
        unit = re.search(r"^TimeoutStopSec=(\d+)$", text_of("deploy", "systemd", "bulkhead.service"), re.M).group(1)
        self.assertEqual(self.service["stop_grace_period"], unit + "s")
