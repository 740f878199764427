"""One process that executes several runs, one after the other: what stays, and what must not."""
import os
import time
import unittest

from fake_host import GuestTest, NoAnswer, Run, text_result
from projects import ProjectsTest


class Session:
    """The runs of a session, each but the last announced as such."""

    def __init__(self, host):
        self.host = host

    def run(self, code, **more):
        return self.host.run(code, session=True, **more)

    def cancelled(self, code):
        """A run that is cancelled once it has printed `go`."""
        run_id = self.host.start(code, session=True)
        run = self.host.follow(Run(), run_id, until=lambda run: b"go\n" in run.output["stdout"])
        time.sleep(0.05)
        self.host.send({"type": "cancel", "id": run_id})
        return self.host.follow(run, run_id)


class SessionTest(GuestTest):
    def session(self, handler=None):
        return Session(self.host(handler))


class State(SessionTest):
    def test_variables_imports_and_open_files_stay(self):
        session = self.session()
        self.assert_ok(session.run("""
            import json, os, dataclasses
            x = 41
            file = open("notes.txt", "w+")
            file.write("not flushed ")
            @dataclasses.dataclass
            class Point:
                x: int
            def double(value): return value * 2 + offset
            os.makedirs("data"); os.chdir("data")
            """))
        run = session.run("""
            offset = 1
            file.write("yet"); file.seek(0)
            [x + 1, json.dumps([double(2)]), file.read(), Point(3).x, os.path.basename(os.getcwd()),
             __name__, Point.__module__]
            """)
        self.assert_ok(run)
        self.assertEqual(run.value, [42, "[5]", "not flushed yet", 3, "data", "__main__",
                                     "__main__"])

    def test_what_a_failed_run_did_stays(self):
        session = self.session()
        self.assertEqual(session.run("a = 1\nraise ValueError('no')\na = 2").exit_code, 1)
        self.assertEqual(session.run("a += 1\nexit(3)").exit_code, 3)
        self.assertEqual(session.run("a = = 2").done["error"]["type"], "SyntaxError")
        run = session.run("print(a)\na")
        self.assert_ok(run)
        self.assertEqual((run.stdout, run.value), ("2\n", 2))

    def test_with_and_without_a_loop(self):
        session = self.session()
        self.assert_ok(session.run("import asyncio\nqueue = asyncio.Queue()\nawait queue.put(5)"))
        self.assertEqual(session.run("asyncio.run(queue.get())").value, 5)
        self.assertEqual(session.run("await mcp_files.read()").value, "ok")
        self.assertEqual(session.run("mcp_files.read()").value, "ok")

    def test_exit_functions_and_pools_are_left_for_the_end(self):
        session = self.session()
        self.assert_ok(session.run("""
            import atexit, logging, tempfile
            from concurrent.futures import ThreadPoolExecutor
            atexit.register(print, "the end")
            pool = ThreadPoolExecutor(2)
            folder = tempfile.TemporaryDirectory()
            logging.basicConfig(filename="log.txt", filemode="w")
            logging.warning("one")
            before = pool.submit(int, "3").result()
            """))
        run = session.run("""
            import os
            logging.warning("two")
            [before, pool.submit(int, "4").result(), os.path.isdir(folder.name),
             open("log.txt").read()]
            """)
        self.assert_ok(run)
        self.assertEqual((run.stdout, run.value),
                         ("", [3, 4, True, "WARNING:root:one\nWARNING:root:two\n"]))
        # A run that isn't announced as one of several ends as the interpreter does.
        self.assertEqual(session.host.run("5").stdout, "the end\n")

    def test_output_of_a_run_is_its_own(self):
        session = self.session()
        session.run("import sys, io\nfirst = sys.stdout\nsys.stdout = io.StringIO()")
        run = session.run("print('two')\nfirst.write('by the first stream\\n')\nNone")
        self.assertEqual(run.stdout, "two\nby the first stream\n")

    def test_warnings_are_shown_for_each_run(self):
        session = self.session()
        for _ in range(2):
            self.assertIn("old thing", session.run(
                "import warnings\nwarnings.warn('old thing')").stderr)


class Tracebacks(SessionTest):
    def test_each_run_shows_its_own_lines(self):
        session = self.session()
        session.run("def one(f):\n    return f()  # of the first run\n")
        session.run("import traceback\ndef two(f):\n    return one(f)  # of the second run\n")
        run = session.run("def three():\n    raise KeyError('x')  # of the third run\ntwo(three)")
        lines = [line for line in run.stderr.splitlines() if "^" not in line and "~" not in line]
        self.assertEqual(lines, [
            "Traceback (most recent call last):",
            '  File "<run-3>", line 3, in <module>', "    two(three)",
            '  File "<run-2>", line 3, in two', "    return one(f)  # of the second run",
            '  File "<run>", line 2, in one', "    return f()  # of the first run",
            '  File "<run-3>", line 2, in three', "    raise KeyError('x')  # of the third run",
            "KeyError: 'x'"])
        run = session.run("import inspect\nprint(inspect.getsource(two), inspect.getsource(one))")
        self.assertIn("return one(f)  # of the second run", run.stdout)
        self.assertIn("return f()  # of the first run", run.stdout)


class Cancelling(SessionTest):
    def test_the_state_survives(self):
        for name, code in (("sleep", "time.sleep(600)"), ("loop", "while True: n += 1"),
                           ("call", "mcp_files.never()"), ("await", "await mcp_files.never()"),
                           ("process", "import subprocess\nsubprocess.run(['sleep', '600'])")):
            with self.subTest(name):
                session = self.session(
                    lambda payload: NoAnswer if payload["tool"] == "never" else text_result("ok"))
                session.run("import time\nn = 0\nkept = ['yes']")
                run = session.cancelled("kept.append('also')\nprint('go')\n" + code)
                self.assertEqual((run.exit_code, run.done["error"]["type"]),
                                 (130, "KeyboardInterrupt"))
                run = session.run("kept + [mcp_files.read()]")
                self.assert_ok(run)
                self.assertEqual(run.value, ["yes", "also", "ok"])

    def test_threads_of_a_cancelled_run_do_not_hold_up(self):
        session = self.session()
        run = session.cancelled("""
            import threading
            stop = threading.Event()
            thread = threading.Thread(target=stop.wait, args=(600,))
            thread.start()
            print("go")
            stop.wait(600)
            """)
        self.assertEqual(run.exit_code, 130)
        self.assertEqual(session.run("'on'").value, "on")
        run = session.cancelled("another = threading.Thread(target=stop.wait, args=(600,))\n"
                                "another.start()\nprint('go')")
        self.assertEqual(run.exit_code, 130)
        self.assertEqual(session.run("stop.set()\nthread.join(60)\nanother.join(60)\n"
                                     "[thread.is_alive(), another.is_alive()]").value,
                         [False, False])

    def test_a_late_cancel_never_hits_the_next_run(self):
        session = self.session()
        for number in range(60):
            run_id = session.host.start("'end'", session=True)
            time.sleep(number * 0.00005)
            session.host.send({"type": "cancel", "id": run_id})
            self.assertIn(session.host.follow(Run(), run_id).exit_code, (0, 130))
            self.assertEqual(session.run("for _ in range(1000): pass\n'whole'").value, "whole")

    def test_signals_between_two_runs_do_no_harm(self):
        session = self.session()
        self.assert_ok(session.run("""
            import signal, time
            class Alarm(Exception): pass
            def ring(*_): raise Alarm("rung")
            signal.signal(signal.SIGALRM, ring)
            signal.signal(signal.SIGUSR1, ring)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            """))
        time.sleep(0.2)
        os.kill(session.host.process.pid, 10)
        self.assertEqual(session.run("'on'").value, "on")
        run = session.run("signal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(600)")
        self.assertEqual(run.done["error"]["type"], "Alarm")

    def test_a_trace_function_that_raises_ends_with_its_run(self):
        session = self.session()
        session.run("import sys\ndef trace(*_): raise ValueError('traced')\nsys.settrace(trace)")
        self.assertEqual(session.run("'on'").value, "on")


class Calls(SessionTest):
    def test_between_two_runs_nothing_is_called_and_nothing_sent(self):
        asked = []
        session = self.session(lambda payload: asked.append(payload["tool"]) or text_result("ok"))
        session.run("""
            import threading, time
            from mcp.runtime import MCPError
            errors = []
            go_on = threading.Event()
            def work():
                go_on.wait()
                time.sleep(0.1)
                print("from the thread")
                try: mcp_files.between()
                except MCPError as error: errors.append([error.code, error.message])
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            """)
        session.run("go_on.set()")
        with self.assertRaises(AssertionError):
            session.host.next_frame(timeout=0.4)
        run = session.run("thread.join(60)\nerrors")
        self.assertEqual((run.stdout, asked), ("", []))
        self.assertEqual(run.value, [["closed", "the run that this call belongs to has ended, so "
                                      "it can call no more tools"]])

    def test_pending_calls_fail_with_their_run(self):
        asked = []

        def handler(payload):
            asked.append(payload["tool"])
            return NoAnswer if payload["tool"] == "never" else text_result(
                "yes" if "never" in asked else "")
        session = self.session(handler)
        self.assert_ok(session.run("""
            import threading
            from mcp.runtime import MCPError
            errors = []
            def work():
                try: mcp_files.never()
                except MCPError as error: errors.append(error.code)
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            while not mcp_files.is_never_asked(): pass
            """))
        self.assertEqual(session.run("thread.join(60)\nerrors").value, ["closed"])


class Tools(ProjectsTest):
    def test_a_tool_that_one_run_saves_the_next_one_uses(self):
        session = Session(self.guest())
        self.assert_ok(session.run("def f(): return 1\nsave_tool(f)\n"
                                   "save_tool('def g(n): return n + 1')\ndel f"))
        self.assertEqual(session.run("import user_tools\n[f(), g(1), user_tools.g(2)]").value,
                         [1, 2, 3])
        self.assert_ok(session.run("save_tool('def g(n): return n + 10')"))
        self.assertEqual(session.run("import user_tools\n[f(), g(1), user_tools.g(2)]").value,
                         [1, 11, 12])
        self.assert_ok(session.run("save_memory('k', 5)"))
        self.assertEqual(session.run("load_memory('k')").value, 5)


if __name__ == "__main__":
    unittest.main()
