"""The container's files: what they name is there, they agree with each other, and the scripts do what they are for.
Nothing is built here, for that needs an image of Debian from a registry."""

import fnmatch
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import unittest

from places import DEPLOY, ROOT, text_of, variable_of_setup
from debian_programs import program
from host import patience, read, wait_until
from http_server import TenantServer
from world import BINARY, World

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
        for script in [*scripts, *(text_of("deploy", "container", name) for name in ("start.sh", "healthy.sh"))]:
            done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, timeout=patience(10))
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)

    def test_a_configuration_that_is_named_has_to_be_there(self):
        done = subprocess.run(["sh", os.path.join(CONTAINER, "start.sh")], capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent",
                                   "BULKHEAD_CONFIG": "/nonexistent/b.toml"}, timeout=patience(10))
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent/b.toml", done.stderr)

    def test_the_first_start_in_a_new_volume(self):
        """The program itself makes the configuration; what it would build and serve is only noted here."""
        world = World()
        self.addCleanup(world.close)
        home = world.path("home")
        for folder in (home, world.path("run"), world.path("bin")):
            os.mkdir(folder)
        with open(world.path("bin/bulkhead"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\necho "$@" >>"$NOTES"\n[ "$1" != token ] || exec "$PROGRAM" "$@"\n')
        world.settle()
        os.chmod(world.path("bin/bulkhead"), 0o755)
        env = {"PATH": f"{world.path('bin')}:{os.environ['PATH']}", "HOME": home, "XDG_RUNTIME_DIR": world.path("run"),
               "PROGRAM": BINARY, "NOTES": world.path("notes")}
        for start in (1, 2):
            done = subprocess.run(["sh", os.path.join(CONTAINER, "start.sh")], capture_output=True, text=True, env=env,
                                  timeout=patience(60))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("first-token" in done.stderr, start == 1, done.stderr)
        config = home + "/MCPs/bulkhead.toml"
        served = f"serve --config {config} --listen 0.0.0.0:8765"
        self.assertEqual(read(world.path("notes")).splitlines(),
                         [f"token new local --add-tenant --id first --config {config}", "image build", served,
                          "image build", served])
        token = read(home + "/first-token").strip()
        self.assertEqual(tomllib.loads(read(config))["tenants"]["local"]["tokens"],
                         [{"id": "first", "sha256": hashlib.sha256(token.encode()).hexdigest()}])
        self.assertEqual(os.stat(home + "/first-token").st_mode & 0o777, 0o600)
        self.assertNotIn(token, done.stdout + done.stderr)

    def test_it_is_healthy_with_and_without_tls(self):
        world = World({})
        self.addCleanup(world.close)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=bulkhead.example.org", "-days", "2", "-keyout", world.path("key.pem"), "-out",
                        world.path("cert.pem")], check=True, capture_output=True, timeout=patience(30))
        world.settle()
        tls = f'[tls]\ncertificate = "{world.path("cert.pem")}"\nkey = "{world.path("key.pem")}"\n'
        for more in ("", tls):
            with self.subTest(more):
                server = TenantServer(world, {"ann": ""}, more)
                script = text_of("deploy", "container", "healthy.sh").replace(":8765", f":{server.port}")
                ask = lambda: subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=patience(30))
                try:
                    wait_until(lambda: ask().returncode == 0, 60, "it is healthy")
                finally:
                    self.assertEqual(server.stop(), 0, server.log_text())
                self.assertNotEqual(ask().returncode, 0, "nobody is there any more")


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
        self.assertIn(f":{port}/", text_of("deploy", "container", "healthy.sh"))
        kind, program = self.service["healthcheck"]["test"]
        self.assertEqual(kind, "CMD")
        self.assertIn(f"COPY deploy/container/healthy.sh /usr/local/bin/{program}\n", text)

    def test_it_waits_as_long_as_the_unit_does(self):
        unit = re.search(r"^TimeoutStopSec=(\d+)$", text_of("deploy", "systemd", "bulkhead.service"), re.M).group(1)
        self.assertEqual(self.service["stop_grace_period"], unit + "s")
