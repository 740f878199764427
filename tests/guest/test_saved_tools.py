"""Functions saved for later runs: what is saved, what the file becomes, how later runs get them."""
import ast
import os
import subprocess
import sys
import textwrap
import time
import unittest

from fake_host import Run
from projects import ProjectsTest

FILE = "user_tools.py"


class Saving(ProjectsTest):
    def test_a_function_is_there_in_later_runs(self):
        said = self.output_of("""
            def double(n, *, by=2):
                "Doubles a number."
                return n * by

            print(save_tool(double))
            """)
        self.assertEqual(said, "Tool 'double' saved. It will be available in later runs.\n")
        self.assertEqual(self.output_of("print(double(21))"), "42\n")
        self.assertEqual(self.output_of("from user_tools import double\nprint(double(2, by=5))"),
                         "10\n")
        self.assertEqual(self.output_of("import user_tools\nprint(user_tools.double(4))"), "8\n")
        self.assertEqual(self.output_of("print(saved_tools())"),
                         "[{'name': 'double', 'signature': 'double(n, *, by=2)', "
                         "'doc': 'Doubles a number.'}]\n")

    def test_it_is_the_same_function_in_runtime(self):
        self.output_of("from mcp import runtime\ndef f(): return 'f'\nruntime.save_tool(f)\n"
                       "assert runtime.save_tool is save_tool\n"
                       "assert 'save_tool' in runtime.__all__")
        self.assertEqual(self.output_of("from mcp.runtime import saved_tools\n"
                                        "print([each['name'] for each in saved_tools()], f())"),
                         "['f'] f\n")

    def test_exactly_the_source_is_saved(self):
        self.output_of('''
            import functools

            def outer():
                if True:
                    @functools.lru_cache(
                        maxsize=3)
                    def inner(a,
                  b=(1,
            2)):
                        """Doc of two

                        lines\u2028with a form feed \\x0c."""
                        text = """
                    kept
            as it is"""
                        # comment
                        return text + f"""{
                            a}
                          end"""
                    return inner

            inner = outer()
            save_tool(inner)
            print(repr(inner("é")), file=open("/tmp/bulkhead-inner", "w"))
            ''')
        content = self.read(FILE).decode()
        self.assertTrue(content.startswith("import functools\n@functools.lru_cache("), content)
        with open("/tmp/bulkhead-inner") as file:
            expected = file.read()
        os.unlink("/tmp/bulkhead-inner")
        self.assertEqual(self.output_of("print(repr(inner('é')))"), expected)

    def test_kinds_of_definitions(self):
        self.output_of("""
            import asyncio
            async def later(x):
                await asyncio.sleep(0)
                return x
            class Counter:
                '''Counts.'''
                def __init__(self, start: int = 0): self.n = start
                def up(self):
                    self.n += 1
                    return self.n
            save_tool(later); save_tool(Counter)
            save_tool("    def indented():\\n        return '''a\\n  b'''\\n")
            save_tool("def text(): return 1", name="renamed")
            save_tool("class\\tShort: pass", name="Long")
            """)
        self.assertEqual(self.output_of("print(await later(3), Counter(4).up(), repr(indented()), "
                                        "renamed(), Long.__name__)"), "3 5 'a\\n  b' 1 Long\n")
        self.assertEqual(self.output_of("print([each['signature'] for each in saved_tools()])"),
                         "['Counter(start: int=0)', 'Long()', 'indented()', 'await later(x)', "
                         "'renamed()']\n")

    def test_functions_of_modules_and_of_earlier_runs(self):
        host = self.guest()
        with open(host.workspace + "/helper.py", "w") as file:
            file.write("x = 1\n\ndef helper():\n    return 'from a file'\n")
        self.assert_ok(host.run("def first(): return 1"))
        self.assert_ok(host.run("def second(): return 2\nsave_tool(first)\nsave_tool(second)\n"
                                "import helper\nsave_tool(helper.helper)"))
        self.assertEqual(self.output_of("print(first(), second(), helper())"), "1 2 from a file\n")

    def test_what_it_imports_comes_along(self):
        said = self.output_of("""
            import json as j, os.path
            from typing import List, Optional as O
            from mcp.servers.files import read
            SCALE = 3

            def use(x: O[int] = None) -> List[str]:
                global _seen
                _seen = [k for k in range(2)]
                return [j.dumps(x), os.path.basename("a/b"), mcp_files.stat, read, SCALE, use]

            print(save_tool(use))
            print(save_tool(use))
            """)
        self.assertEqual(said, ("Tool 'use' saved. It will be available in later runs. They won't "
                                "have SCALE, read, which it uses: import or define that inside it.\n")
                         * 2)
        content = self.read(FILE).decode()
        self.assertEqual(content.splitlines()[:4], [
            "import json as j", "import os.path", "from typing import List",
            "from typing import Optional as O"])
        self.assertEqual(content.count("import"), 4)
        # `json` itself isn't in the file.
        self.output_of("import json, functools\ndef d(f): return functools.wraps(f)\n"
                       "def more(): return json.dumps(d)\nsave_tool(more)")
        self.assertIn("\nimport json\ndef more", self.read(FILE).decode())
        self.assertEqual(self.output_of("print('use' in globals(), use.__annotations__['x'])"),
                         "True typing.Optional[int]\n")

    def test_what_cannot_be_saved(self):
        for code, words in (
                ("save_tool(lambda x: x)", "lambda"),
                ("save_tool(len)", "builtin_function_or_method len"),
                ("save_tool(int)", "the source of the class int isn't known"),
                ("save_tool(type('Made', (), {}))", "Made isn't known"),
                ("save_tool(3)", "not a int"),
                ("save_tool([].append)", "append"),
                ("class C:\n    def m(self): pass\nsave_tool(C().m)", "method m"),
                ("exec('def made(): pass')\nsave_tool(made)", "made isn't known"),
                ("def o(n):\n    def closed(): return n\n    return closed\nsave_tool(o(1))",
                 "variables of the function around it"),
                ("save_tool('def f(:')", "doesn't compile"),
                ("save_tool('def f():\\n  return 1\\n  break')", "doesn't compile"),
                ("save_tool('def f(): \\ud800')", "isn't valid Unicode"),
                ("save_tool('def f(): pass\\0')", "doesn't compile"),
                ("save_tool('x = 1')", "one function or class"),
                ("save_tool('')", "one function or class"),
                ("save_tool('import os\\ndef f(): pass')", "imports go inside"),
                ("save_tool('def f(): pass', name='a-b')", "'a-b' isn't a name"),
                ("save_tool('def f(): pass', name='class')", "'class' isn't a name"),
                ("save_tool('def f(): pass', name='x\\n')", "isn't a name"),
                ("save_tool('def f(): pass', name=3)", "3 isn't a name"),
                ("save_tool('def sum(): pass')", "that every run has"),
                ("save_tool('def f(): pass', name='save_memory')", "that every run has"),
                ("def f(x=unknown_there): pass\nsave_tool(f)", None),
                ("y = 2\ndef f(x=y): pass\nsave_tool(f)", "which doesn't have y"),
                ("y = 2\ndef f(x: y): pass\nsave_tool(f)", "which doesn't have y"),
                ("def d(f): return f\n@d\ndef f(x): pass\nsave_tool(f)", "which doesn't have d")):
            with self.subTest(code):
                if words is None:
                    self.assertEqual(self.run_later(code).done["error"]["type"], "NameError")
                else:
                    kind, message = self.error_of(code)
                    self.assertEqual(kind, "invalid_argument")
                    self.assertIn(words, message)
        self.assertFalse(os.path.exists(self.path(FILE)))

    def test_limits(self):
        code = "save_tool('def f():\\n    return ' + repr('x' * %d))"
        self.assert_ok(self.run_later(code % 260_000))
        kind, message = self.error_of(code % 262_144)
        self.assertEqual(kind, "too_large")
        self.assertIn("262144 are allowed", message)
        self.write(FILE, "#" * (4 * 1024 * 1024 - 20) + "\n")
        kind, message = self.error_of("save_tool('def f(): return \"another\"')")
        self.assertEqual(kind, "too_large")
        self.assertIn("4194304 are allowed", message)
        self.assertEqual(os.path.getsize(self.path(FILE)), 4 * 1024 * 1024 - 19)


class TheFile(ProjectsTest):
    def test_the_rest_stays_byte_for_byte(self):
        before = ("#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\r\n\"\"\"Mine: é\r\n\"\"\"\r\n"
                  "X = 1 ; Y = 2\x0c\n\n\n\n@staticmethod\n\ndef a ( ) :  # a\n\treturn 1 # end\r\n")
        after = "\nif X:\n    def b(): return 'inner'\n# no newline at the end"
        self.write(FILE, before + "def b():\n    return 'old'\n" + after)
        self.output_of("save_tool('def b(): return \"new\"')")
        self.assertEqual(self.read(FILE).decode(), before + 'def b(): return "new"\n' + after)
        self.output_of("save_tool('def c(): return 3')")
        self.assertEqual(self.read(FILE).decode(),
                         before + 'def b(): return "new"\n' + after + "\n\n\ndef c(): return 3\n")
        self.assertEqual(self.output_of("print(delete_tool('c'), delete_tool('c'), "
                                        "delete_tool('X'))"), "True False False\n")
        self.assertEqual(self.read(FILE).decode(), before + 'def b(): return "new"\n' + after + "\n")
        self.output_of("save_tool('def b(): return \"newer\"')\nsave_tool('def a(): return 7')")
        self.assertEqual(self.read(FILE).decode(),
                         before.partition("@static")[0] + "def a(): return 7\n"
                         + 'def b(): return "newer"\n' + after + "\n")

    def test_the_last_of_several_counts_and_all_are_deleted(self):
        self.write(FILE, "def f(): return 1\n\n\ndef g(): return 0\n\n\ndef f(): return 2\n")
        self.assertEqual(self.output_of("print(f(), len(saved_tools()))"), "2 2\n")
        self.output_of("def f(): return 3\nsave_tool(f)")
        self.assertEqual(self.read(FILE),
                         b"def f(): return 1\n\n\ndef g(): return 0\n\n\ndef f(): return 3\n")
        self.assertEqual(self.output_of("print(delete_tool(f))"), "True\n")
        self.assertEqual(self.read(FILE), b"\n\ndef g(): return 0\n")

    def test_a_broken_file_is_not_written_to(self):
        content = b"def f():\n    return 1\n\ndef g(:\n"
        self.write(FILE, content)
        for code in ("save_tool('def h(): pass')", "delete_tool('f')", "saved_tools()"):
            kind, message = self.error_of(code)
            self.assertEqual(kind, "unavailable")
            self.assertIn("line 4", message)
        self.assertEqual(self.read(FILE), content)
        self.write(FILE, b"x = '\xff'\n")
        self.assertIn("utf-8", self.error_of("save_tool('def h(): pass')")[1])

    def test_nothing_else_is_left_in_the_folder(self):
        self.write(".new-0123", "left by a killed run")
        os.utime(self.path(".new-0123"), (0, 0))
        self.output_of("for i in range(20): save_tool('def f(): return %d' % i)")
        self.assertEqual(sorted(os.listdir(self.projects)), [".user_tools.lock", FILE])
        self.assertEqual(self.read(FILE), b"def f(): return 19\n")

    def test_two_that_save_at_once_lose_nothing(self):
        hosts = [self.guest() for _ in range(3)]
        ids = [host.start("for i in range(15):\n    save_tool('def t%d_%%d(): return %%d' %% (i, i))"
                          % number) for number, host in enumerate(hosts)]
        for host, run_id in zip(hosts, ids):
            self.assert_ok(host.follow(Run(), run_id))
        tree = ast.parse(self.read(FILE))
        self.assertEqual({node.name for node in tree.body},
                         {"t%d_%d" % (n, i) for n in range(3) for i in range(15)})
        self.assertEqual(len(tree.body), 45)

    def test_a_full_disk_leaves_the_old_file(self):
        self.output_of("save_tool('def f(): return 1')")
        before = self.read(FILE)
        kind, message = self.error_of(
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "save_tool('def g(): return ' + repr('x' * 5000))")
        self.assertEqual(kind, "unavailable")
        self.assertIn("write", message)
        self.assertEqual(self.read(FILE), before)
        self.assertEqual(sorted(os.listdir(self.projects)), [".user_tools.lock", FILE])


class Loading(ProjectsTest):
    def test_only_runs_that_use_a_name_execute_the_file(self):
        self.write(FILE, "print('executed')\nimport json\n_hidden = 1\nLIMIT = 5\n"
                         "def tool(): return json.dumps(LIMIT)\nclass Kind: pass\n")
        for code, expected in (
                ("print(1)", "1\n"),
                ("x = 'tool'\nprint(x)", "tool\n"),
                ("def tool(): return 'mine'\nprint(tool())", "executed\nmine\n"),
                ("print(tool())", "executed\n5\n"),
                ("def f():\n    return [lambda: LIMIT]\nprint(f()[0]())", "executed\n5\n"),
                ("print(Kind.__module__, Kind.__name__)", "executed\nuser_tools Kind\n"),
                ("import user_tools as u\nprint(u._hidden)", "executed\n1\n"),
                ("await_ = tool\nimport asyncio\nawait asyncio.sleep(0)\nprint(tool())",
                 "executed\n5\n")):
            with self.subTest(code):
                self.assertEqual(self.output_of(code), expected)
        self.assertEqual(self.run_later("_hidden").done["error"]["type"], "NameError")

    def test_every_way_to_have_a_name(self):
        self.write(FILE, textwrap.dedent("""\
            import os.path as way1, sys
            from os import (sep,
                linesep as way2)
            if True:
                way3 = 3
            else: way4 = 4
            try:
                from no_such import way5
            except ImportError:
                def way5(): return 5
            way6: int = 6; way7 = 7
            way8, (way9, *wäy10) = 8, (9, 10)
            for way11 in range(12): pass
            (way12 := 12)
            async  def way13(): pass
            @staticmethod
            def\tway14(a): pass
            x = \\
              way15 = 15
            def way16(
              b): pass
            """))
        for name in ["way%d" % number for number in range(1, 17) if number not in (4, 10)] + ["wäy10"]:
            self.assertEqual(self.output_of("%s\nprint(1)" % name), "1\n", name)
        self.write(FILE, "def way(one): pass\nclass Other(way):\n    two = 2\nthree = 'four'\n1 / 0\n")
        for code in ("one = 1", "two = 1", "five = way_ = 1"):
            self.assert_ok(self.run_later(code))  # the file isn't even executed

    def test_without_a_file_nothing_happens(self):
        run = self.run_later("import sys\nprint([name for name in sys.modules if name in "
                             "('bulkhead_tools', 'bulkhead_store', 'bulkhead_memory', 'user_tools')])\nno()")
        self.assertEqual(run.stdout, "[]\n")
        self.assertEqual(run.done["error"]["message"], "name 'no' is not defined")
        run = self.run_later("import user_tools")
        self.assertEqual(run.done["error"]["type"], "ModuleNotFoundError")
        self.assertEqual(self.output_of("print(saved_tools(), delete_tool('x'))"), "[] False\n")

    def test_a_broken_file_is_reported_and_the_run_goes_on(self):
        self.write(FILE, "def good(): return 1\n\ndef bad(:\n")
        run = self.run_later("print('on')\ngood()")
        self.assertEqual(run.stdout, "on\n")
        self.assertIn("%s, line 3: SyntaxError" % self.path(FILE), run.stderr)
        self.assertEqual(run.done["error"]["type"], "NameError")
        run = self.run_later("print('on')")
        self.assert_ok(run)
        run = self.run_later("try:\n    import user_tools\nexcept SyntaxError as e:\n"
                             "    print(e.lineno, e.filename)")
        self.assert_ok(run)
        self.assertEqual(run.stdout, "3 %s\n" % self.path(FILE))

    def test_a_statement_that_fails_is_left_out(self):
        self.write(FILE, textwrap.dedent("""\
            from __future__ import annotations
            def first(): return 1
            import no_such_module
            @no_such_module.wrap(
                1)
            def second(): return 2
            class Third:
                1 / 0
            def fourth(x: anything): return 4
            raise SystemExit(3)
            fifth = 5
            """))
        run = self.run_later("print(first(), fourth(0), fifth)\n'second' in globals()")
        self.assertEqual((run.exit_code, run.stdout, run.value), (0, "1 4 5\n", False))
        lines = run.stderr.splitlines()
        self.assertEqual(len(lines), 4, lines)
        for line, (number, kind) in zip(lines, ((3, "ModuleNotFoundError"), (4, "NameError"),
                                                (8, "ZeroDivisionError"), (10, "SystemExit"))):
            self.assertIn("%s, line %d: %s" % (self.path(FILE), number, kind), line)
        run = self.run_later("from user_tools import first, second")
        self.assertIn("cannot import name 'second'", run.done["error"]["message"])

    def test_hostile_files_harm_nothing(self):
        def link():
            os.symlink("/etc/passwd", self.path(FILE))

        def endless():
            os.symlink("/dev/zero", self.path(FILE))

        def huge():
            with open(self.path(FILE), "wb") as file:
                file.truncate(100 * 1024 * 1024)

        for make in (link, endless, huge, lambda: os.mkfifo(self.path(FILE)),
                     lambda: os.mkdir(self.path(FILE))):
            make()
            run = self.run_later("print('on')\ntool()")
            self.assertEqual(run.stdout, "on\n")
            self.assertIn("Saved tools aren't available: %s: " % self.path(FILE), run.stderr)
            self.assertLess(run.seconds, 20)
            run = self.run_later("try:\n    import user_tools\nexcept ImportError as e:\n"
                                 "    print(e)")
            self.assertIn(self.path(FILE), run.stdout)
            for code in ("save_tool('def f(): pass')", "saved_tools()", "delete_tool('f')"):
                kind, message = self.error_of(code)
                self.assertEqual(kind, "unavailable")
                self.assertIn("remove it", message)
            (os.rmdir if os.path.isdir(self.path(FILE)) else os.unlink)(self.path(FILE))

    def test_hostile_lock_files_harm_nothing(self):
        lock = self.path(".user_tools.lock")
        for make in (lambda: os.symlink("/etc/passwd", lock), lambda: os.mkfifo(lock),
                     lambda: os.mkdir(lock), lambda: os.symlink("nowhere", lock)):
            make()
            started = time.monotonic()
            kind, message = self.error_of("save_tool('def f(): pass')")
            self.assertEqual(kind, "unavailable")
            self.assertIn(lock, message)
            self.assertLess(time.monotonic() - started, 20)
            (os.rmdir if os.path.isdir(lock) and not os.path.islink(lock) else os.unlink)(lock)
        self.assertFalse(os.path.exists(self.path("nowhere")))

    def test_a_lock_that_is_held_for_ever_is_given_up(self):
        holder = subprocess.Popen(
            [sys.executable, "-c", "import fcntl, sys, time\n"
             "f = open(sys.argv[1], 'w')\nfcntl.flock(f, fcntl.LOCK_EX)\nprint(flush=True)\n"
             "time.sleep(100)", self.path(".user_tools.lock")], stdout=subprocess.PIPE)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        holder.stdout.readline()
        kind, message = self.error_of("import bulkhead_runtime as r\n"
                                      "r._part('bulkhead_store').LOCK_SECONDS = 0.3\n"
                                      "save_tool('def f(): pass')")
        self.assertEqual(kind, "timeout")
        self.assertIn("another run", message)

    def test_a_session_sees_what_others_save(self):
        host = self.guest()
        self.assert_ok(host.run("save_tool('def f(): return 1')"))
        self.assertEqual(host.run("f()").value, 1)
        self.output_of("save_tool('def f(): return 2')\nsave_tool('def g(): return 3')")
        self.assertEqual(host.run("[f(), g()]").value, [2, 3])
        self.assertEqual(host.run("save_tool('def g(): return 4')\n"
                                  "from user_tools import g\ng()").value, 4)
        self.assert_ok(host.run("def f(): return 'mine'"))
        self.output_of("save_tool('def f(): return 5')")
        self.assertEqual(host.run("f()").value, "mine")
        self.assert_ok(host.run("delete_tool('g')\ndel g"))
        self.assertEqual(host.run("g()").done["error"]["type"], "NameError")

    def test_tracebacks_show_the_line_of_the_tool(self):
        self.write(FILE, "def fails():\n    raise ValueError('there')\n")
        run = self.run_later("fails()")
        self.assertIn('File "%s", line 2, in fails\n    raise ValueError' % self.path(FILE),
                      run.stderr)
        self.assertEqual(self.output_of("import inspect\nprint(inspect.getsource(fails))"),
                         "def fails():\n    raise ValueError('there')\n\n")

    def test_an_endless_file_is_interrupted_like_the_code(self):
        self.write(FILE, "def f(): pass\nwhile True: pass\n")
        host = self.guest()
        run_id = host.start("print('begin')\nf()")
        time.sleep(0.5)
        host.send({"type": "cancel", "id": run_id})
        run = host.follow(Run(), run_id)
        self.assertEqual((run.exit_code, run.stdout), (130, ""))
        self.write(FILE, "def f(): return 'mended'\n")
        self.assertEqual(host.run("f()").value, "mended")


if __name__ == "__main__":
    unittest.main()
