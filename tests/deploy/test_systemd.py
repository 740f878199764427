"""The units: what systemd makes of them, whether they fit the program, and whether sandboxes work within their bounds."""

import configparser
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from places import DEPLOY, HERE, text_of, variable_of_setup
from host import account, as_account, is_root, patience
from world import BINARY

UNITS = os.path.join(DEPLOY, "systemd")
MOST_EXPOSED = 69  # tenths; a unit that restricts nothing has 92 and more
IMAGE = "localhost/bulkhead-sandbox:latest"


def unit(name="bulkhead.service"):
    """The settings of a unit, by section; none of those that are read here may stand twice."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str
    parser.read(os.path.join(UNITS, name), encoding="utf-8")
    return parser


def run(*command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=patience(options.pop("seconds", 60)), **options)


def verify(folder, names):
    """What systemd says of the units in a folder; their program is one that is there."""
    for name in names:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            content = file.read().replace("/usr/local/bin/bulkhead", "/bin/true")
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    done = run("systemd-analyze", "verify", *(os.path.join(folder, name) for name in names))
    return done.returncode, done.stdout + done.stderr


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bulkhead-units-")
        self.addCleanup(shutil.rmtree, self.folder)

    def test_systemd_takes_them(self):
        for name in ("bulkhead.service", "bulkhead.socket"):
            shutil.copy(os.path.join(UNITS, name), self.folder)
        self.assertEqual(verify(self.folder, ["bulkhead.service", "bulkhead.socket"]), (0, ""))

    def test_a_misspelt_setting_would_be_seen(self):
        with open(os.path.join(self.folder, "bulkhead.service"), "w", encoding="utf-8") as file:
            file.write(text_of("deploy", "systemd", "bulkhead.service").replace("LimitCORE", "LimitCores"))
        _, said = verify(self.folder, ["bulkhead.service"])
        self.assertIn("LimitCores", said)

    def test_no_more_is_open_than_rootless_containers_need(self):
        done = run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}",
                   os.path.join(UNITS, "bulkhead.service"))
        print(done.stdout.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_would_keep_newuidmap_from_its_work_is_not_set(self):
        # systemd.exec(5), NoNewPrivileges=: what implies it for a service that isn't root's.
        implying = {"NoNewPrivileges", "DynamicUser", "LockPersonality", "MemoryDenyWriteExecute", "PrivateDevices",
                    "ProtectClock", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules",
                    "ProtectKernelTunables", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime",
                    "RestrictSUIDSGID", "SystemCallArchitectures", "SystemCallFilter", "SystemCallLog"}
        self.assertEqual(implying & set(unit()["Service"]), set())

    def test_folders_and_account_are_those_of_the_setup(self):
        service = unit()["Service"]
        home, runtime = variable_of_setup("account_home"), variable_of_setup("account_runtime")
        self.assertEqual("/var/lib/" + service["StateDirectory"], home)
        self.assertEqual("/run/" + service["RuntimeDirectory"], runtime)
        self.assertEqual(service["Environment"], "XDG_RUNTIME_DIR=" + runtime)
        self.assertEqual(service["User"], variable_of_setup("account"))
        self.assertTrue(service["ExecStart"].split("--config ")[1].startswith(home + "/"))

    def test_systemd_waits_longer_than_the_program_takes_to_stop(self):
        budgets = []
        for name in os.listdir(os.path.join(DEPLOY, "..", "main")):
            if name.endswith(".cpp"):
                budgets += re.findall(r"constexpr \w+ (\w*(?:stop|drain)\w*)(?:\{| = )(\d+)s?\}?;",
                                      text_of("main", name))
        # The engine's own stop, and that of the sessions over HTTP before it.
        self.assertGreaterEqual(len(budgets), 2, budgets)
        self.assertLess(sum(int(seconds) for _, seconds in budgets), int(unit()["Service"]["TimeoutStopSec"]), budgets)

    def test_the_installation(self):
        done = run("bash", os.path.join(UNITS, "install.sh"), "--root", self.folder, "--program", "/bin/true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.access(os.path.join(self.folder, "usr/local/bin/bulkhead"), os.X_OK))
        installed = os.path.join(self.folder, "etc/systemd/system")
        drop_in = os.path.join(installed, "bulkhead.service.d/10-user-manager.conf")
        v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.assertEqual(os.path.exists(drop_in), v2)
        if v2:
            with open(drop_in, encoding="utf-8") as file:
                self.assertIn(f"/run/user/{account().pw_uid}/bus", file.read())
        self.assertEqual(verify(installed, ["bulkhead.service", "bulkhead.socket"]), (0, ""))


class Bounds:
    """Sandboxes within the bounds that the unit sets, in a store of their own."""

    def setUp(self):
        self.state, self.runtime = self.folder("/var/lib"), self.folder("/run")

    def folder(self, base):
        path = tempfile.mkdtemp(prefix="bulkhead-unit-", dir=base)
        self.addCleanup(shutil.rmtree, path)
        os.chown(path, account().pw_uid, account().pw_gid)
        return path

    def own(self, path, mode=0o644):
        os.chown(path, account().pw_uid, account().pw_gid)
        os.chmod(path, mode)

    def prepare(self):
        """A copy of the program, and of the account's image."""
        shutil.copy(BINARY, os.path.join(self.state, "bulkhead"))
        self.own(os.path.join(self.state, "bulkhead"), 0o755)
        as_account("podman", "save", "--quiet", "--output", os.path.join(self.state, "image.tar"), IMAGE, seconds=120)
        os.makedirs(os.path.join(self.state, ".config", "containers"))
        settings = os.path.join(account().pw_dir, ".config", "containers", "storage.conf")
        if os.path.exists(settings):
            shutil.copy(settings, os.path.join(self.state, ".config", "containers"))
        for path, _, files in os.walk(os.path.join(self.state, ".config")):
            for name in [path] + [os.path.join(path, each) for each in files]:
                self.own(name, 0o755)

    def within(self, script, capabilities):
        # As after a boot: podman's notes are of processes of another namespace.
        for name in os.listdir(self.runtime):
            shutil.rmtree(os.path.join(self.runtime, name))
        given = ",".join("+" + name.removeprefix("CAP_").lower() for name in capabilities)
        return run(os.path.join(HERE, "bounds.sh"), account().pw_name, self.state, self.runtime, given,
                   unit()["Service"]["UMask"], "bash", "-c", script, seconds=240)

    def test_sandboxes_hold_there_what_they_hold_elsewhere(self):
        service = unit()["Service"]
        # What bounds.sh does.
        self.assertEqual((service["ProtectSystem"], service["ProtectHome"], service["PrivateTmp"]),
                         ("strict", "tmpfs", "yes"))
        self.prepare()
        capabilities = service["CapabilityBoundingSet"].split()
        loaded = self.within("podman load --quiet --input image.tar", capabilities)
        self.assertEqual(loaded.returncode, 0, loaded.stderr)

        def held(answer):
            self.assertIn("constraints", answer.stdout, answer.stderr)
            return {row["name"]: row["held"] for row in json.loads(answer.stdout)["constraints"]}

        for runtime in ("podman", "oci"):
            with self.subTest(runtime):
                done = self.within(f"MCP_BRIDGE_RUNTIME={runtime} ./bulkhead doctor --json", capabilities)
                outside = run(BINARY, "doctor", "--json", seconds=120,
                              env={**os.environ, "MCP_BRIDGE_RUNTIME": runtime})
                self.assertEqual(held(done), held(outside), done.stderr)
                self.assertTrue(held(done)["seccomp"])

    def test_the_bounds_are_there(self):
        done = self.within("touch /etc/x /usr/x /var/lib/x; ls -A /root /home; grep CapEff /proc/self/status",
                           unit()["Service"]["CapabilityBoundingSet"].split())
        self.assertEqual(done.stderr.count("Read-only file system"), 3, done.stderr)
        self.assertEqual(done.stdout.split(), ["/home:", "/root:", "CapEff:", "0" * 16])

    def test_each_capability_is_needed(self):
        granted = unit()["Service"]["CapabilityBoundingSet"].split()
        # Some processors of ids are installed with file capabilities instead of setuid; those need fewer.
        setuid = os.stat("/usr/bin/newuidmap").st_mode & 0o4000
        needed = granted if setuid else ["CAP_SETUID", "CAP_SETGID"]
        for name in needed:
            done = self.within("podman unshare true", [other for other in granted if other != name])
            self.assertNotEqual(done.returncode, 0, name)
            self.assertIn("map", done.stderr, name)
        self.assertEqual(self.within("podman unshare true", granted).returncode, 0)


if is_root():
    # Only root can set such bounds.
    class UnitBounds(Bounds, unittest.TestCase):
        pass
