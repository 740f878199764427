"""What crun or runc is told without an engine, against what podman tells it for the same run: every difference is
listed here with its reason."""

import glob
import json
import re
import unittest

from host import as_account, instances_dir, read, wait_until
from instances import guests_of
from world import World

SLEEPER = "import time; time.sleep(600)"


def by(key, value=lambda entry: True):
    return lambda entries: {entry[key]: value(entry) for entry in entries}


def mount(entry):
    return {"type": entry["type"], "source": entry["source"], "options": sorted(entry["options"])}


# Lists whose order means nothing, by what tells their entries apart.
KEYED = {"mounts": by("destination", mount), "process.rlimits": by("type", lambda e: (e["soft"], e["hard"])),
         "process.env": lambda entries: dict(each.split("=", 1) for each in entries),
         "linux.namespaces": by("type", lambda entry: entry.get("path", "")),
         "linux.maskedPaths": lambda entries: {each: True for each in entries},
         "linux.readonlyPaths": lambda entries: {each: True for each in entries}}


def flat(value, path=""):
    """A config by the paths of its values. An argument's second value is 0 in a seccomp rule that has none."""
    if path in KEYED:
        value = KEYED[path](value)
    if isinstance(value, dict) and value:
        found = {}
        for name, inner in value.items():
            found.update(flat(inner, f"{path}.{name}" if path else name))
        return found
    if path == "linux.seccomp.syscalls":
        return {path: [{**rule, "args": [{"valueTwo": 0, **each} for each in rule.get("args", [])]} for rule in value]}
    return {path: value}


def differences(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    return {path: (ours.get(path), theirs.get(path)) for path in sorted({*ours, *theirs})
            if ours.get(path) != theirs.get(path)}


def absent(value):
    return value is None


def only(condition):
    """We have nothing there, and podman what the condition allows."""
    return lambda ours, theirs: absent(ours) and condition(theirs)


def anything(_):
    return True


# Patterns of paths, what may differ there, and why.
EXPLAINED = [
    (r"ociVersion", lambda ours, theirs: ours.startswith("1.0.") and theirs.startswith("1."),
     "podman says its library's version; all that is used here is in 1.0.2"),
    (r"process\.args", lambda ours, theirs: ours[1:] == theirs[1:] and ours[0] == "/run/bulkhead-init",
     "the same init program under a name of our own"),
    (r"process\.user\.additionalGids", only(lambda gids: set(gids) <= {0, 65534}),
     "podman puts a user that isn't in the image's /etc/group into the group root; ours is in no other group"),
    (r"root\.path", lambda ours, theirs: ours.startswith("/"),
     "an unpacked image that all containers share, in place of an overlay mount for each"),
    (r"annotations\.io\..*", only(anything), "notes of podman's for podman and its tools"),
    (r"annotations\.(org\.opencontainers\.image|run\.oci)\..*", only(anything), "notes of podman's"),
    (r"annotations\.org\.bulkhead\.instance", lambda ours, theirs: ours == "INSTANCE" and absent(theirs),
     "podman keeps our label in its own storage"),
    (r"mounts\./run/bulkhead-init\..*", lambda ours, theirs: absent(theirs), "the init program, see process.args"),
    (r"mounts\./run/podman-init\..*", only(anything), "the init program, see process.args"),
    (r"mounts\./dev/shm\.type", lambda ours, theirs: (ours, theirs) == ("tmpfs", "bind"),
     "podman mounts a tmpfs outside, to share it between containers of a pod, and binds it; ours is inside alone"),
    (r"mounts\./dev/shm\.source", lambda ours, theirs: ours == "tmpfs", "see above"),
    (r"mounts\./dev/shm\.options",
     lambda ours, theirs: {"noexec", "nosuid", "nodev", "size=67108864"} <= set(ours or ()),
     "see above: the size is said here"),
    (r"mounts\./(tmp|workspace)\.options", lambda ours, theirs: set(theirs or ()) - set(ours or ()) == {"rprivate"} and
     set(ours) <= set(theirs), "what is mounted in a new mount namespace is private anyway"),
    (r"mounts\./run/\.containerenv\..*", only(anything), "a mark for programs that look for podman; nothing needs it"),
    (r"mounts\./etc/(hostname|hosts|resolv\.conf)\..*", only(anything),
     "the kernel knows the host's name; there is no network whose names were to be found"),
    (r"linux\.sysctl\.net\.ipv4\.ping_group_range", only(anything),
     "podman's default lets everyone ping; there is nobody to ping"),
    (r"linux\.(maskedPaths|readonlyPaths)\..*", lambda ours, theirs: ours and absent(theirs),
     "ours has what later versions of podman mask, too"),
    (r"linux\.cgroupsPath", lambda ours, theirs: True, "the name of the container's cgroup"),
]


def explanation(path, values):
    return next((reason for pattern, allowed, reason in EXPLAINED
                 if re.fullmatch(pattern, path) and allowed(*values)), None)


class Bundle(unittest.TestCase):
    """Both configs are of runs of the real program."""

    @classmethod
    def setUpClass(cls):
        cls.world = World()
        cls.ours = cls.config_of("oci", cls.own_config)
        cls.theirs = cls.config_of("podman", cls.podmans_config)

    @classmethod
    def tearDownClass(cls):
        cls.world.close()

    @classmethod
    def config_of(cls, runtime, find):
        client = cls.world.client(MCP_BRIDGE_RUNTIME=runtime)
        client.start_run(SLEEPER)
        wait_until(lambda: guests_of(client.instance), 60, "a guest runs")
        text = find(client.instance)
        client.close()
        return json.loads(text.replace(client.instance, "INSTANCE"))

    @staticmethod
    def own_config(instance):
        return read(glob.glob(f"{instances_dir()}/{instance}/runs/*/config.json")[0])

    @staticmethod
    def podmans_config(instance):
        run = glob.glob(f"{instances_dir()}/{instance}/runs/*")[0].rsplit("/", 1)[1]
        return read(as_account("podman", "inspect", "--format", "{{.OCIConfigPath}}", f"bulkhead-{run}").strip())

    def test_every_difference_is_explained(self):
        found = differences(self.ours, self.theirs)
        self.assertGreater(len(flat(self.theirs)), 50, "podman's config was read")
        unexplained = {path: values for path, values in found.items() if not explanation(path, values)}
        self.assertEqual(unexplained, {}, "ours and podman's")
        self.assertTrue(found, "no difference at all would mean that one config was compared with itself")

    def test_a_difference_would_be_found(self):
        """Each constraint that is taken away, or weakened, is one that nothing explains."""
        for path, change in {"process.noNewPrivileges": False, "root.readonly": False, "process.user.uid": 0,
                             "process.capabilities": {"bounding": ["CAP_SYS_ADMIN"]}, "process.oomScoreAdj": 0,
                             "linux.namespaces": [], "linux.maskedPaths": [], "linux.seccomp.syscalls": [],
                             "linux.uidMappings": [], "process.rlimits": [], "mounts": [],
                             "linux.seccomp.defaultAction": "SCMP_ACT_ALLOW"}.items():
            with self.subTest(path):
                weak = json.loads(json.dumps(self.ours))
                *parents, last = path.split(".")
                place = weak
                for name in parents:
                    place = place[name]
                self.assertNotEqual(place[last], change)
                place[last] = change
                found = differences(weak, self.theirs)
                self.assertTrue([each for each, values in found.items() if not explanation(each, values)])

    def test_folders_are_mounted_before_what_lies_in_them(self):
        targets = [each["destination"] for each in self.ours["mounts"]]
        for place, target in enumerate(targets):
            late = [each for each in targets[place:] if target.startswith(each + "/")]
            self.assertEqual(late, [], f"after {target}, which they would hide")
