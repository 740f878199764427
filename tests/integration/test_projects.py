"""What stays in /projects from run to run, in real containers: saved tools and memories, writers in two
containers at once, what a hostile run leaves there, and the host's account, to which all of it belongs in the
end."""

import json
import os
import stat
import unittest

from host import as_account, patience
from world import POOLED, BulkheadTest


class Projects(BulkheadTest):
    def setUp(self):
        self.folder = os.path.join(self.world.state, "user_tools")

    def tearDown(self):
        as_account("find", self.folder, "-mindepth", "1", "-delete", check=False)
        as_account("podman", "unshare", "find", self.folder, "-mindepth", "1", "-delete", check=False)
        self.assertEqual(os.listdir(self.folder), [])

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write_as_account(self, name, text):
        as_account("sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1"', "sh", self.path(name), text)

    def value(self, code, **more):
        return self.run_well(code, **more).get("result")


class Persistence(Projects):
    def test_tools_and_memories_are_there_in_the_next_run(self):
        self.run_well("""
            import json
            def pack(value, *, indent=None):
                "Packs a value."
                return json.dumps(value, indent=indent)
            save_tool(pack)
            save_memory("Straße/1", {"a": [1, None]}, {"tags": ["x"]})
            update_memory("count", lambda n: n + 1, default=0)
            """)
        answer = self.run_well("""
            from mcp.runtime import saved_tools
            update_memory("count", lambda n: n + 1)
            [pack([1]), load_memory("Straße/1"), load_memory("count"), saved_tools(),
             [each["key"] for each in list_memories()], get_memory_info("Straße/1")["metadata"]]
            """)
        self.assertEqual(answer["result"], [
            "[1]", {"a": [1, None]}, 2,
            [{"name": "pack", "signature": "pack(value, *, indent=None)", "doc": "Packs a value."}],
            ["Straße/1", "count"], {"tags": ["x"]}])
        self.assertNotIn("stderr", answer)

    def test_another_server_with_the_same_state_has_them(self):
        self.run_well("save_memory('k', 'v')\nsave_tool('def f(): return load_memory(\"k\")')")
        other = self.world.client()
        self.assertEqual(self.value("f()", client=other), "v")
        self.assertEqual(other.close(patience(20)), 0)

    def test_a_broken_file_is_reported_and_the_run_goes_on(self):
        self.write_as_account("user_tools.py", "def f(): return 1\n\nimport no_such_module\n")
        answer = self.run_well("f()")
        self.assertEqual(answer["result"], 1)
        self.assertIn("/projects/user_tools.py, line 3: ModuleNotFoundError", answer["stderr"])
        self.write_as_account("user_tools.py", "def f(:\n")
        answer = self.run_well("print('on')\nimport re\n[each for each in [1]]")
        self.assertEqual(answer["stdout"], "on\n")


class Pooled(Projects):
    variables = POOLED

    def test_a_sandbox_that_was_booted_before_has_them_too(self):
        self.run_well("print(1)")  # from here on the next ones wait booted
        for number in range(4):
            self.run_well(f"save_tool('def f(): return {number}')\nsave_memory('n', {number})")
            self.assertEqual(self.value("[f(), load_memory('n')]"), [number, number])


class TwoAtOnce(Projects):
    def test_no_update_and_no_tool_is_lost(self):
        code = """
            import os, time
            open("/projects/ready{0}", "w").close()
            while not (os.path.exists("/projects/ready0") and os.path.exists("/projects/ready1")):
                time.sleep(0.001)
            for i in range(100):
                update_memory("n", lambda n: n + 1, default=0)
                if i % 10 == 0:
                    save_tool("def t%d_{0}(): return {0}" % i)
            """
        runs = [self.start(code.replace("{0}", str(number)), timeout=100) for number in range(2)]
        for run in runs:
            self.assert_success(self.answer(run))
        self.assertEqual(self.value("[load_memory('n'), len(saved_tools()), t90_0(), t90_1()]"),
                         [200, 20, 0, 1])
        self.assertEqual(sorted(os.listdir(self.path("memory"))), [".lock", "n.json"])

    def test_a_run_that_dies_in_the_middle_leaves_no_lock(self):
        answer = self.run_code("""
            import os
            save_memory("n", 1)
            update_memory("n", lambda n: os._exit(3))
            """)
        self.assertEqual(answer["status"], "error", answer)
        answer = self.run_code("import time\nupdate_memory('n', lambda n: time.sleep(50))", timeout=2)
        self.assertEqual(answer["status"], "timeout", answer)
        self.assertEqual(self.value("update_memory('n', lambda n: n + 1)"), 2)


class TheHost(Projects):
    def test_its_account_reads_writes_and_deletes_what_code_made(self):
        self.run_well("""
            import os
            save_memory("k", "value")
            save_tool("def f(): return 1")
            os.umask(0o077)
            save_memory("private", "too")
            save_tool("def g(): return 2")
            """)
        self.assertEqual(json.loads(as_account("cat", self.path("memory/k.json")))["value"], "value")
        self.assertEqual(json.loads(as_account("cat", self.path("memory/private.json")))["value"], "too")
        self.assertEqual(as_account("cat", self.path("user_tools.py")),
                         "def f(): return 1\n\n\ndef g(): return 2\n")
        for path, folders, files in os.walk(self.folder):
            for name in folders + files:
                mode = os.lstat(os.path.join(path, name)).st_mode
                self.assertEqual(mode & stat.S_IRWXO, 0, name)  # others get nothing
        as_account("sh", "-c", "echo 'def h(): return 3' >> " + self.path("user_tools.py"))
        self.write_as_account("memory/Mine.json", "[1, 2]")
        self.write_as_account("memory/k.json", '"replaced"')
        self.assertEqual(self.value("save_memory('Mine', load_memory('Mine') + [3])\n"
                                    "[f(), h(), load_memory('k'), load_memory('Mine'), "
                                    "save_tool('def h(): return 4'), delete_memory('k')]")[:4],
                         [1, 3, "replaced", [1, 2, 3]])
        as_account("rm", "-r", self.path("memory"), self.path("user_tools.py"))
        self.assertEqual(self.value("[list_memories(), saved_tools(), memory_exists('k')]"), [[], [], False])

    def test_its_account_deletes_what_code_forbade(self):
        self.run_well("""
            import os
            save_memory("k", 1)
            save_tool("def f(): return 1")
            os.mkdir("/projects/empty")
            os.mkdir("/projects/full")
            open("/projects/full/file", "w").close()
            for path in ("memory/k.json", "user_tools.py", "empty", "full"):
                os.chmod("/projects/" + path, 0)
            """)
        answer = self.run_code("try: load_memory('k')\nexcept Exception as e: print(e.code, e)\nf")
        self.assertIn("unavailable", answer["stdout"])
        self.assertIn("Permission denied", answer["stdout"] + answer["stderr"])
        as_account("rm", "-f", self.path("memory/k.json"), self.path("user_tools.py"))
        as_account("rmdir", self.path("empty"))
        # What lies in a folder that forbids everything is reached as its owner.
        as_account("podman", "unshare", "rm", "-r", self.path("full"))
        self.assertEqual(sorted(os.listdir(self.folder)), [".user_tools.lock", "memory"])


class Hostile(Projects):
    def test_what_a_run_leaves_harms_no_other(self):
        self.run_well("""
            import os
            save_memory("good", 1)
            os.mkfifo("/projects/user_tools.py")
            os.symlink("/etc/passwd", "/projects/memory/link.json")
            os.symlink("/dev/zero", "/projects/memory/zero.json")
            os.mkfifo("/projects/memory/fifo.json")
            os.mkdir("/projects/memory/folder.json")
            with open("/projects/memory/huge.json", "wb") as file:
                file.truncate(100 * 1024 * 1024)
            """)
        answer = self.run_well("""
            from mcp.runtime import MCPError
            print([each["key"] for each in list_memories()])
            for key in ("link", "zero", "fifo", "folder", "huge"):
                try: load_memory(key)
                except MCPError as error: print(key, error.code)
            for attempt in (lambda: save_tool("def f(): pass"), saved_tools, lambda: save_memory("more", 1)):
                try: attempt()
                except MCPError as error: print(error.code)
            """)
        self.assertEqual(answer["stdout"].splitlines(), [
            "['good', 'huge']", "link unavailable", "zero unavailable", "fifo unavailable",
            "folder unavailable", "huge unavailable", "unavailable", "unavailable", "quota"])
        self.assertIn("/projects/user_tools.py: it isn't a regular file", answer["stderr"])
        self.run_well("""
            import os
            os.unlink("/projects/user_tools.py")
            for key in ("huge", "zero", "fifo"): assert delete_memory(key)
            save_memory("link", 2)
            save_tool("def f(): return 5")
            """)
        self.assertEqual(self.value("[f(), load_memory('link'), load_memory('good')]"), [5, 2, 1])

    def test_locks_that_are_none(self):
        for make in ("os.mkfifo", "os.mkdir", "lambda path: os.symlink('/etc/passwd', path)"):
            answer = self.run_well(f"""
                import os
                from mcp.runtime import MCPError
                os.makedirs("/projects/memory", exist_ok=True)
                for path in ("/projects/.user_tools.lock", "/projects/memory/.lock"):
                    ({make})(path)
                for attempt in (lambda: save_tool("def f(): pass"), lambda: save_memory("more", 1)):
                    try: attempt()
                    except MCPError as error: print(error.code, error)
                for path in ("/projects/.user_tools.lock", "/projects/memory/.lock"):
                    (os.rmdir if make_is_folder else os.unlink)(path)
                """.replace("make_is_folder", str(make == "os.mkdir")))
            self.assertEqual([line.split()[0] for line in answer["stdout"].splitlines()],
                             ["unavailable"] * 2, answer)

    def test_a_lock_that_another_run_keeps(self):
        self.run_well("save_memory('k', 1)")
        keeper = self.start("""
            import fcntl, time
            file = open("/projects/memory/.lock", "r+")
            fcntl.flock(file, fcntl.LOCK_EX)
            save = open("/projects/held", "w")
            time.sleep(60)
            """, timeout=60)
        answer = self.run_well("""
            import os, time
            from mcp.runtime import MCPError
            while not os.path.exists("/projects/held"): time.sleep(0.05)
            started = time.monotonic()
            try: save_memory("k", 2)
            except MCPError as error: print(error.code, error)
            print(load_memory("k"), time.monotonic() - started < 20)
            """, timeout=60)
        self.assertEqual(answer["stdout"], "timeout lock /projects/memory/.lock: another run has held it for 10 "
                         "seconds; try again\n1 True\n")
        self.client.cancel(keeper)

    def test_a_full_disk_corrupts_nothing(self):
        """On /tmp, which is small, in place of /projects."""
        answer = self.run_well("""
            import os, sys
            from mcp.runtime import MCPError
            os.mkdir("/tmp/projects")
            sys.modules["bulkhead_files"].FOLDER = "/tmp/projects"
            save_memory("k", "old")
            save_tool("def f(): return 1")
            filler = open("/tmp/filler", "wb", buffering=0)
            try:
                while True: filler.write(b"x" * 4096)
            except OSError: pass
            before = [sorted(os.listdir(path)) for path in ("/tmp/projects", "/tmp/projects/memory")]
            for attempt in (lambda: save_memory("k", "x" * 50_000), lambda: save_memory("new", "x" * 50_000),
                            lambda: update_memory("k", lambda old: old * 50_000),
                            lambda: save_tool("def g(): return " + repr("x" * 50_000))):
                try: print("done", attempt())
                except MCPError as error: print(error.code, "No space left" in str(error))
            print(before == [sorted(os.listdir(path)) for path in ("/tmp/projects", "/tmp/projects/memory")])
            print(load_memory("k"), load_memory("new"), open("/tmp/projects/user_tools.py").read())
            """)
        self.assertEqual(answer["stdout"], "unavailable True\n" * 4 + "True\nold None def f(): return 1\n\n")


if __name__ == "__main__":
    unittest.main()
