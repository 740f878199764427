"""Guests whose /projects is a temporary folder."""
import os
import shutil
import tempfile

from fake_host import GuestTest


class ProjectsTest(GuestTest):
    def setUp(self):
        self.projects = tempfile.mkdtemp(prefix="bulkhead-projects-test-")
        self.addCleanup(shutil.rmtree, self.projects, True)

    def path(self, *names):
        return os.path.join(self.projects, *names)

    def guest(self):
        """A new guest, ready for its run."""
        host = self.host()
        run = host.run("import sys; sys.modules['bulkhead_files'].FOLDER = %r" % self.projects)
        self.assert_ok(run)
        return host

    def run_later(self, code):
        """What code does in a process of its own."""
        return self.guest().run(code)

    def output_of(self, code):
        run = self.run_later(code)
        self.assert_ok(run)
        return run.stdout

    def error_of(self, code):
        """The MCPError that ended the code: (code, message)."""
        run = self.run_later("from mcp.runtime import MCPError\ntry:\n"
                             + "".join("    %s\n" % line for line in code.splitlines())
                             + "    result = ['none', '']\n"
                             "except MCPError as error:\n    result = [error.code, str(error)]\n"
                             "result")
        self.assertEqual(run.exit_code, 0, run.done)
        return tuple(run.value)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()
