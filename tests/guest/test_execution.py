"""Executing code: namespaces, results, exits, tracebacks, asyncio, what Python does at its end."""
import json
import sys
import textwrap
import unittest

from fake_host import GuestTest, Refusal, Run


class Namespace(GuestTest):
    def test_main_is_a_real_module(self):
        run = self.run_code("""
            import dataclasses, inspect, pickle, sys, typing

            @dataclasses.dataclass
            class Point:
                x: "int"
                y: int = 0

            def double(n: "Point"):
                return 2 * n

            if __name__ == "__main__":
                print("main", sys.modules["__main__"].Point is Point, __file__, sys.argv)
            print(pickle.loads(pickle.dumps(Point(1, 2))))
            print(typing.get_type_hints(double)["n"] is Point)
            print(inspect.getsource(double), end="")
            print(inspect.getsource(Point).splitlines()[-1])
            import os.path
            print(os.path.dirname(os.path.abspath(__file__)) == os.getcwd())
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout.splitlines(), [
            "main True <run> ['<run>']", "Point(x=1, y=2)", "True",
            'def double(n: "Point"):', "    return 2 * n", "    y: int = 0", "True"])

    def test_source_of_code_that_imported_linecache_first(self):
        host = self.host()
        self.assert_ok(host.run("import linecache, inspect"))
        run = host.run("def second():\n    pass\nprint(inspect.getsource(second))")
        self.assertEqual(run.stdout, "def second():\n    pass\n\n")
        run = host.run("def third():\n    pass\nprint(inspect.getsource(second), __file__)")
        self.assertEqual(run.stdout, "def second():\n    pass\n <run-3>\n")

    def test_the_guest_is_not_in_the_way(self):
        run = self.run_code("""
            import sys
            print(sorted(name for name in globals() if not name.startswith("__")
                         and not name.startswith("mcp_")))
            """)
        self.assertEqual(run.stdout, "['LOADED_MCP_SERVERS', 'sys']\n")

    def test_modules_beside_the_code_and_in_site_folders(self):
        host = self.host()
        with open(host.workspace + "/helper.py", "w") as file:
            file.write("import mcp\ndef f():\n    return mcp_files.read()\n")
        run = host.run("""
            import sys, helper
            print(helper.f(), sys.path[-1], sys.path[0])
            print(any(path.endswith(("/site-packages", "/dist-packages")) for path in sys.path))
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "ok /projects %s\nTrue\n" % host.workspace)

    def test_a_second_run_keeps_the_state(self):
        host = self.host()
        self.assert_ok(host.run("x = 41\nimport json"))
        self.assertEqual(host.run("x += 1\njson.dumps(x)").value, "42")
        self.assertEqual(host.run("from concurrent.futures import ThreadPoolExecutor as P\n"
                                  "P().submit(int, '3').result()").value, 3)
        self.assertEqual(host.run("P().submit(int, '4').result()").value, 4)


class Results(GuestTest):
    def test_the_last_expression_is_the_result(self):
        host = self.host()
        for code, expected in (
                ("1 + 1", {"repr": "2", "value": 2}),
                ("x = 5\n{'a': [x, None, 'é']}",
                 {"repr": "{'a': [5, None, 'é']}", "value": {"a": [5, None, "é"]}}),
                ("(1, 2)", {"repr": "(1, 2)", "value": [1, 2]}),
                ("(1,)", {"repr": "(1,)", "value": [1]}),
                ("{1, 2}", {"repr": "{1, 2}"}),
                ("frozenset([1])", {"repr": "frozenset({1})"}),
                ("set(), frozenset(), (), [], {}, b'x'",
                 {"repr": "(set(), frozenset(), (), [], {}, b'x')"}),
                ("{1: 2}", {"repr": "{1: 2}", "value": {"1": 2}}),
                ("{1: 2, '1': 3}", {"repr": "{1: 2, '1': 3}"}),
                ("float('nan')", {"repr": "nan"}),
                ("1j", {"repr": "1j"}),
                ("'doc'", {"repr": "'doc'", "value": "doc"}),
                ("# comment\nx;", {"repr": "5", "value": 5}),
                ("False", {"repr": "False", "value": False})):
            with self.subTest(code):
                self.assertEqual(host.run(code).done.get("result"), expected)
        for code in ("", "# only a comment", "None", "x = 1", "print()", "def f(): pass", "pass"):
            with self.subTest(code):
                self.assertNotIn("result", host.run(code).done)

    def test_values_that_are_hard_to_show_do_not_fail_the_run(self):
        host = self.host()
        host.run("""
            class Bad:
                def __repr__(self): raise RuntimeError("no")
            class Worse:
                def __repr__(self): return 5
            ring = [1]; ring.append(ring)
            knot = {}; knot["me"] = (knot,)
            deep = []
            for _ in range(100_000): deep = [deep]
            """)
        for code, shown in (
                ("Bad()", "<Bad object: repr() raised RuntimeError>"),
                ("[Bad()]", "[<Bad object: repr() raised RuntimeError>]"),
                ("Worse()", "<Worse object: repr() raised TypeError>"),
                ("ring", "[1, [...]]"),
                ("knot", "{'me': ({...},)}")):
            with self.subTest(code):
                run = host.run(code)
                self.assertEqual((run.exit_code, run.done["result"]), (0, {"repr": shown}))
        run = host.run("deep")
        self.assertEqual((run.exit_code, list(run.done["result"])), (0, ["repr"]))

    def test_large_values_are_cut(self):
        host = self.host()
        for code in ("[0] * 50_000_000", "'x' * 50_000_000", "'\\0' * 9000", "['é' * 9000] * 9",
                     "dict.fromkeys(range(2_000_000))"):
            with self.subTest(code):
                run = host.run(code)
                result = run.done["result"]
                self.assertEqual(run.exit_code, 0)
                self.assertNotIn("value", result)
                self.assertLessEqual(len(json.dumps(result["repr"], ensure_ascii=False).encode()),
                                     4096)
                self.assertLess(run.seconds, 30)
        run = host.run("'x' * 10_000")
        self.assertEqual(run.value, "x" * 10_000)
        self.assertLessEqual(len(run.done["result"]["repr"]), 4096)


class Exits(GuestTest):
    def test_exit_codes(self):
        host = self.host()
        for code, status, stderr in (
                ("import sys; sys.exit(3)", 3, ""), ("exit()", 0, ""), ("quit(4)", 4, ""),
                ("raise SystemExit", 0, ""), ("import sys; sys.exit('bye é')", 1, "bye é\n"),
                ("import sys; sys.exit(-1)", 255, ""), ("raise SystemExit((1, 2))", 1, "(1, 2)\n"),
                ("import sys; sys.exit(True)", 1, ""),
                ("import asyncio, sys\nasync def main(): sys.exit(6)\nasyncio.run(main())", 6, ""),
                ("import sys, asyncio\nawait asyncio.sleep(0)\nsys.exit(7)", 7, "")):
            with self.subTest(code):
                run = host.run(code)
                self.assertEqual((run.exit_code, run.stderr), (status, stderr))
                self.assertNotIn("error", run.done)

    def test_an_uncaught_exception(self):
        run = self.run_code("""
            import json
            def inner():
                json.loads("{")
            inner()
            """)
        self.assertEqual(run.exit_code, 1)
        error = run.done["error"]
        self.assertEqual(error["type"], "json.decoder.JSONDecodeError")
        self.assertIn("line 1", error["message"])
        self.assertEqual(error["traceback"], run.stderr)
        lines = run.stderr.splitlines()
        self.assertEqual(lines[:3], ["Traceback (most recent call last):",
                                     '  File "<run>", line 5, in <module>', "    inner()"])
        self.assertIn('    json.loads("{")', lines)
        self.assertNotIn("bulkhead", run.stderr)
        self.assertNotIn("entrypoint", run.stderr)

    def test_chained_exceptions_in_every_kind_of_code(self):
        body = """
            def inner():
                try:
                    mcp_files.absent() if LOOP is None else LOOP
                    1 / 0
                except ZeroDivisionError as cause:
                    raise ValueError("second") from cause
            """
        for prelude, call in (
                ("LOOP = 1", "inner()"),
                ("LOOP = 1\nimport asyncio", "async def main(): inner()\nawait main()"),
                ("LOOP = 1\nimport asyncio", "async def main(): inner()\nasyncio.run(main())")):
            with self.subTest(call):
                run = self.host().run(prelude + "\n" + textwrap.dedent(body) + call)
                self.assertEqual(run.done["error"]["type"], "ValueError")
                self.assertIn("direct cause of the following", run.stderr)
                self.assertTrue(run.stderr.splitlines()[1].startswith('  File "<run>"'))
                self.assertEqual(run.stderr.count("bulkhead_"), 0)
                if "await main()" in call:
                    self.assertNotIn("asyncio", run.stderr)

    def test_a_failed_call_shows_the_users_line_only(self):
        def handler(payload):
            raise Refusal("denied", "not allowed: files.read")
        for code in ("mcp_files.read()", "await mcp_files.read()",
                     "import asyncio\nawait asyncio.gather(mcp_files.read())"):
            with self.subTest(code):
                run = self.run_code(code, handler)
                self.assertEqual(run.done["error"]["type"], "mcp.runtime.MCPError")
                self.assertEqual(run.stderr.splitlines()[-1],
                                 "mcp.runtime.MCPError: not allowed: files.read")
                self.assertNotIn("bulkhead", run.stderr)
                self.assertIn("    " + code.splitlines()[-1], run.stderr)

    def test_syntax_errors(self):
        host = self.host()
        for code, text in (("x = (1,\ny", "<run"), ("await foo(", "<run"), ("return 5", "return"),
                           ("await x\nreturn 5", "return"), ("def f(:\n pass", "def f(:"),
                           ("  x = 1", "indent"), ("a\0b", "null")):
            with self.subTest(code):
                host.send({"type": "execute", "id": "s", "code": code})
                run = host.follow(Run(), "s")
                self.assertEqual(run.exit_code, 1)
                self.assertIn(text, run.stderr)
                self.assertIn(run.done["error"]["type"],
                              ("SyntaxError", "IndentationError", "ValueError"))
                self.assertNotIn("bulkhead", run.stderr)

    def test_exceptions_that_are_hard_to_show(self):
        host = self.host()
        for code, kind in (
                ("class E(Exception):\n    def __str__(self): raise E2\n"
                 "class E2(Exception): pass\nraise E()", "E"),
                ("class E(Exception):\n    def __getattribute__(self, name): raise KeyError(name)\n"
                 "raise E()", "E"),
                ("raise ValueError('x' * 1_000_000)", "ValueError"),
                ("raise ValueError('\\0' * 50_000)", "ValueError"),
                ("raise ValueError('\\ud800')", "ValueError"),
                ("def f(n): return f(n + 1)\nf(0)", "RecursionError"),
                ("a = ValueError(1); b = KeyError(2); a.__cause__ = b; b.__cause__ = a\nraise a",
                 "ValueError"),
                ("raise BaseException('base')", "BaseException"),
                ("[].append(1, 2)", "TypeError")):
            with self.subTest(code):
                run = host.run(code)
                self.assertEqual((run.exit_code, run.done["error"]["type"]), (1, kind))
                self.assertLess(len(json.dumps(run.done, ensure_ascii=False).encode()), 40_000)

    @unittest.skipIf(sys.version_info < (3, 11), "exception groups came with Python 3.11")
    def test_exception_groups(self):
        run = self.run_code("""
            import asyncio
            async def fail(): 1 / 0
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
            """)
        self.assertEqual(run.done["error"]["type"], "ExceptionGroup")
        self.assertNotIn("bulkhead", run.stderr)

    def test_an_own_excepthook_is_called(self):
        run = self.run_code("""
            import sys
            sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__)
            1 / 0
            """)
        self.assertEqual((run.stdout, run.stderr), ("hook ZeroDivisionError\n", ""))
        self.assertEqual(run.exit_code, 1)
        self.assertIn("1 / 0", run.done["error"]["traceback"])

    def test_recursion_limits(self):
        host = self.host()
        run = host.run("import sys\nsys.setrecursionlimit(60)\nprint(mcp_files.read())")
        self.assert_ok(run)
        run = host.run("import sys\nsys.setrecursionlimit(40)\ndef f(): return f()\nf()")
        self.assertEqual((run.exit_code, run.done["error"]["type"]), (1, "RecursionError"))
        self.assertEqual(host.run("sys.getrecursionlimit() >= 1000").value, True)


class Asyncio(GuestTest):
    def test_both_idioms(self):
        for code in ("import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 5\n"
                     "asyncio.run(main())",
                     "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 5\n"
                     "await main()",
                     "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 5\n"
                     "await asyncio.sleep(0)\nasyncio.run(main())",
                     "async def numbers():\n    for n in (2, 3): yield n\n"
                     "total = 0\nasync for n in numbers(): total += n\ntotal",
                     "async def one(): return 5\n[await one() for _ in 'a'][0]"):
            with self.subTest(code):
                run = self.run_code(code)
                self.assert_ok(run)
                self.assertEqual(run.value, 5)

    def test_run_inside_a_loop_passes_errors_context_and_calls(self):
        run = self.run_code("""
            import asyncio, contextvars
            name = contextvars.ContextVar("name")
            name.set("outer")
            await asyncio.sleep(0)
            async def main():
                return name.get(), await mcp_files.read()
            print(asyncio.run(main()), asyncio.run(main()))
            async def fail():
                raise KeyError("inner")
            try:
                asyncio.run(fail())
            except KeyError as error:
                print("caught", error)
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "('outer', 'ok') ('outer', 'ok')\ncaught 'inner'\n")

    def test_pending_tasks_are_cancelled_at_the_end(self):
        run = self.run_code("""
            import asyncio
            async def long():
                try:
                    await asyncio.sleep(100)
                except asyncio.CancelledError:
                    print("cancelled")
                    raise
            task = asyncio.create_task(long())
            await asyncio.sleep(0)
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "cancelled\n")

    def test_plain_code_may_drive_its_own_loop(self):
        run = self.run_code("""
            import asyncio
            loop = asyncio.new_event_loop()
            async def main(): return await mcp_files.read()
            print(loop.run_until_complete(main()))
            loop.close()
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "ok\n")

    def test_a_call_that_is_never_awaited_is_told(self):
        run = self.run_code("import asyncio\nawait asyncio.sleep(0)\nmcp_files.read()\nNone")
        self.assertEqual(run.exit_code, 0)
        self.assertIn("mcp_files.read(…) was never awaited", run.stderr)


class End(GuestTest):
    def test_threads_and_exit_functions_are_waited_for(self):
        run = self.run_code("""
            import atexit, threading, time
            def work():
                time.sleep(0.05)
                print("thread", mcp_files.read())
            threading.Thread(target=work).start()
            atexit.register(print, "atexit")
            print("code")
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "code\nthread ok\natexit\n")

    def test_pools_left_open_finish_their_work(self):
        run = self.run_code("""
            import time
            from concurrent.futures import ThreadPoolExecutor
            pool = ThreadPoolExecutor(2)
            for number in range(4):
                pool.submit(lambda: (time.sleep(0.02), print("done")))
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "done\n" * 4)

    def test_process_pools_left_open_end_too(self):
        run = self.run_code("""
            from concurrent.futures import ProcessPoolExecutor
            pool = ProcessPoolExecutor(1)
            print(pool.submit(abs, -5).result())
            """)
        self.assert_ok(run)
        self.assertEqual(run.stdout, "5\n")

    def test_an_error_does_not_keep_exit_functions_from_running(self):
        run = self.run_code("import atexit\natexit.register(print, 'atexit')\n1 / 0")
        self.assertEqual((run.stdout, run.exit_code), ("atexit\n", 1))

    def test_a_failing_exit_function_is_shown(self):
        run = self.run_code("import atexit\natexit.register(lambda: 1 / 0)\n5")
        self.assertIn("ZeroDivisionError", run.stderr)
        self.assertEqual(run.exit_code, 0)


if __name__ == "__main__":
    unittest.main()
