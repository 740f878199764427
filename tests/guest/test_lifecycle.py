"""Boot, forks and other processes, sudden ends, interrupts, and the end of the channel."""
import json
import signal
import subprocess
import sys
import time
import unittest

from fake_host import GUEST, GuestTest, Later, NoAnswer, Run, text_result


class Boot(GuestTest):
    def test_ready_says_what_runs(self):
        host = self.host(init=False)
        self.assertEqual(host.ready, {"type": "ready", "protocol": 1,
                                      "python": "%d.%d.%d" % sys.version_info[:3]})

    def test_little_is_loaded_before_work_comes(self):
        run = self.run_code("import sys\nsorted(sys.modules)")
        plain = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys, os, fcntl, select\n"
                                "import _queue, _json, _sitebuiltins, _ast, io\n"
                                "print(*sys.modules)"], stdout=subprocess.PIPE, check=True)
        more = set(run.value) - set(plain.stdout.decode().split())
        self.assertEqual([name for name in sorted(more)
                          if not name.startswith(("bulkhead_", "mcp"))], [])

    def test_the_first_bytes_are_ready(self):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", "-u", str(GUEST / "entrypoint.py")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(json.loads(done.stdout)["type"], "ready")

    def test_the_channel_is_out_of_the_way(self):
        run = self.run_code("""
            import os
            print(os.readlink("/proc/self/fd/0"))
            print(os.readlink("/proc/self/fd/1").split(":")[0])
            low = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 256]
            print(len(low))
            inherited = os.popen("ls /proc/self/fd").read().split()
            print([fd for fd in inherited if int(fd) > 9])
            """)
        self.assertEqual(run.stdout, "/dev/null\npipe\n4\n[]\n")

    def test_frames_in_pieces_and_large_ones(self):
        host = self.host()
        frame = json.dumps({"type": "execute", "id": "slow", "code": "print('é')"})
        for part in (frame[:20], frame[20:50], frame[50:] + "\n\n"):
            host.send_raw(part.encode())
            time.sleep(0.01)
        self.assertEqual(host.follow(Run(), "slow").stdout, "é\n")
        self.assertEqual(host.run("# " + "é" * 2_000_000 + "\n5").value, 5)

    def test_nonsense_from_the_host_ends_the_guest_with_a_reason(self):
        host = self.host()
        host.send_raw(b"nonsense\n")
        self.assertEqual(host.wait(), 70)
        self.assertIn(b"not JSON", host.process.stderr.read())


class OtherProcesses(GuestTest):
    def test_a_forked_child_that_goes_on_ends_like_a_script(self):
        for tail, status, stderr in (("pass", 0, ""), ("import sys; sys.exit(5)", 5, ""),
                                     ("raise ValueError('x')", 1, "ValueError: x\n")):
            with self.subTest(tail):
                run = self.run_code("""
                    import os
                    child = os.fork()
                    if child:
                        print("parent", os.WEXITSTATUS(os.waitpid(child, 0)[1]))
                    else:
                        print("child")
                        TAIL
                    """.replace("TAIL", tail))
                self.assertEqual((run.stdout, run.exit_code), ("child\nparent %d\n" % status, 0))
                self.assertTrue(run.stderr.endswith(stderr) and bool(run.stderr) == bool(stderr),
                                run.stderr)

    def test_a_forked_child_calls_no_tools(self):
        run = self.run_code("""
            import asyncio, os
            from mcp.runtime import MCPError
            async def main():
                await mcp_files.read()
            child = os.fork()
            if not child:
                try:
                    mcp_files.read()
                except MCPError as error:
                    print(error.code)
                try:
                    asyncio.run(main())
                except MCPError as error:
                    print(error.code)
                os._exit(4)
            os.WEXITSTATUS(os.waitpid(child, 0)[1])
            """)
        self.assert_ok(run)
        self.assertEqual((run.stdout, run.value, run.requests), ("closed\nclosed\n", 4, []))

    def test_multiprocessing_needs_no_guard_and_no_file(self):
        run = self.run_code("""
            import multiprocessing
            from mcp.servers.files import *
            def square(n):
                print("in child")
                return n * n
            with multiprocessing.Pool(2) as pool:
                print(pool.map(square, [1, 2, 3]))
            """, lambda payload: [])
        self.assert_ok(run)
        self.assertEqual(run.stdout.count("in child\n"), 3)
        self.assertIn("[1, 4, 9]\n", run.stdout)

    def test_multiprocessing_that_spawns(self):
        for method in ("spawn", "forkserver"):
            with self.subTest(method):
                run = self.run_code("""
                    import multiprocessing
                    def square(n):
                        return n * n
                    if __name__ == "__main__":
                        context = multiprocessing.get_context("METHOD")
                        with context.Pool(1) as pool:
                            print(pool.map(square, [1, 2, 3]))
                    """.replace("METHOD", method))
                self.assert_ok(run)
                self.assertEqual(run.stdout, "[1, 4, 9]\n")

    def test_subprocesses_of_all_kinds(self):
        run = self.run_code("""
            import os, subprocess, sys
            subprocess.run([sys.executable, "-c", "print('child')"])
            print(subprocess.run(["cat"], capture_output=True).stdout)
            subprocess.run(["sh", "-c", "echo nested; exec sh -c 'echo deeper >&2'"],
                           preexec_fn=lambda: None)
            os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned"], os.environ)
            os.wait()
            """)
        self.assertEqual((run.stdout, run.stderr, run.exit_code),
                         ("child\nb''\nnested\nspawned\n", "deeper\n", 0))


class SuddenEnds(GuestTest):
    def ended(self, code):
        """The output and the exit status of a guest that ends without `done`."""
        host = self.host()
        run_id = host.start(code)
        self.assertEqual(host.next_frame(), {"type": "started", "id": run_id})
        output = b""
        while True:
            frame = host.next_frame()
            if frame is None:
                return output.decode(), host.wait()
            self.assertNotEqual(frame["type"], "done")
            output += frame["data"].encode()

    def test_os_exit(self):
        self.assertEqual(self.ended("import os\nprint('said')\nos._exit(3)"), ("said\n", 3))
        self.assertEqual(self.ended("import os, threading\nprint('said')\n"
                                    "threading.Thread(target=os._exit, args=(4,)).start()\n"
                                    "import time; time.sleep(9)"), ("said\n", 4))

    def test_killed(self):
        self.assertEqual(self.ended("import os\nos.kill(os.getpid(), 9)")[1], -signal.SIGKILL)
        self.assertEqual(self.ended("import os\nos.abort()")[1], -signal.SIGABRT)

    def test_the_channel_closed_by_user_code(self):
        self.assertEqual(self.ended("import os\nos.closerange(3, 2048)\nprint('x')")[1], 70)
        self.assertEqual(self.ended("import os\nos.closerange(3, 2048)\nmcp_files.read()")[1], 70)
        self.assertEqual(self.ended("import os\nos.closerange(0, 2048)")[1], 70)

    def test_execv(self):
        self.assertEqual(self.ended("import os\nos.execv('/bin/sh', ['sh', '-c', 'exit 9'])")[1], 9)


class Interrupts(GuestTest):
    def interrupted(self, code, handler=None):
        host = self.host(handler)
        run_id = host.start(code)
        run = host.follow(Run(), run_id, until=lambda run: b"go\n" in run.output["stdout"])
        time.sleep(0.05)
        host.send({"type": "cancel", "id": run_id})
        run = host.follow(run, run_id)
        # The guest lives on.
        self.assertEqual(host.run("1 + 1").value, 2)
        return run

    def test_everything_that_blocks_is_interrupted(self):
        for name, code in (
                ("sleep", "import time\nprint('go')\ntime.sleep(600)"),
                ("loop", "print('go')\nwhile True: pass"),
                ("call", "print('go')\nmcp_files.never()"),
                ("awaited call", "print('go')\nawait mcp_files.never()"),
                ("asyncio.run", "import asyncio\nasync def main():\n    print('go')\n"
                                "    await asyncio.sleep(600)\nasyncio.run(main())"),
                ("sleep in a loop", "import time\nimport asyncio\nawait asyncio.sleep(0)\n"
                                    "print('go')\ntime.sleep(600)"),
                ("nested run", "import asyncio\nawait asyncio.sleep(0)\nasync def main():\n"
                               "    print('go')\n    await asyncio.sleep(600)\n"
                               "asyncio.run(main())"),
                ("gather", "import asyncio\nprint('go')\n"
                           "await asyncio.gather(*[mcp_files.never() for _ in range(50)])"),
                ("process", "import subprocess\nprint('go')\nsubprocess.run(['sleep', '600'])"),
                ("thread", "import threading\nlock = threading.Lock(); lock.acquire()\n"
                           "print('go')\nlock.acquire()"),
                ("end", "import threading, time\n"
                        "stop = threading.Event()\n"
                        "threading.Thread(target=lambda: (print('go'), stop.wait(1))).start()"),
                ("printing", "print('go')\nwhile True: print('y' * 1000)")):
            with self.subTest(name):
                run = self.interrupted(code, lambda payload: NoAnswer)
                self.assertEqual((run.exit_code, run.done["error"]["type"]),
                                 (130, "KeyboardInterrupt"))
                self.assertNotIn("bulkhead", run.stderr)

    def test_code_may_clean_up(self):
        run = self.interrupted("""
            import time
            try:
                print("go")
                time.sleep(600)
            except KeyboardInterrupt:
                print("cleaned", mcp_files.read())
            "kept"
            """)
        self.assertEqual((run.stdout, run.exit_code, run.value), ("go\ncleaned ok\n", 0, "kept"))

    def test_a_second_cancel_interrupts_the_clean_up(self):
        host = self.host()
        run_id = host.start("""
            import time
            try:
                print("go")
                time.sleep(600)
            finally:
                print("again")
                time.sleep(600)
            """.replace("\n            ", "\n"))
        run = Run()
        for word in (b"go\n", b"again\n"):
            host.follow(run, run_id, until=lambda run: word in run.output["stdout"])
            host.send({"type": "cancel", "id": run_id})
        self.assertEqual(host.follow(run, run_id).exit_code, 130)

    def test_cancel_right_after_execute_and_of_other_runs(self):
        host = self.host()
        for _ in range(20):
            host.send({"type": "cancel", "id": "elsewhere"})
            run_id = host.start("import time\ntime.sleep(600)")
            host.send({"type": "cancel", "id": run_id})
            self.assertEqual(host.follow(Run(), run_id).exit_code, 130)
            host.send({"type": "cancel", "id": run_id})
        self.assertEqual(host.run("5").value, 5)

    def test_cancel_around_the_end_of_a_run(self):
        host = self.host()
        for number in range(40):
            run_id = host.start("import time\ntime.sleep(%f)\n'end'" % (number * 0.0001))
            time.sleep(0.001)
            host.send({"type": "cancel", "id": run_id})
            self.assertIn(host.follow(Run(), run_id).exit_code, (0, 130))
        self.assertEqual(host.run("5").value, 5)

    def test_an_own_signal_handler(self):
        run = self.interrupted("""
            import signal
            class Stop(Exception): pass
            def stop(*_): raise Stop("own")
            signal.signal(signal.SIGINT, stop)
            print("go")
            signal.pause()
            """)
        self.assertEqual(run.done["error"]["type"], "Stop")

    def test_a_frame_is_never_cut_by_an_interrupt(self):
        for _ in range(5):
            host = self.host(lambda payload: Later(0, text_result("x")))
            run_id = host.start("print('go')\nwhile True: mcp_files.read(a='x' * 300_000)")
            run = host.follow(Run(), run_id, until=lambda run: len(run.requests) > 3)
            host.send({"type": "cancel", "id": run_id})
            self.assertEqual(host.follow(run, run_id).exit_code, 130)


class EndOfChannel(GuestTest):
    def test_end_of_file_and_shutdown_end_the_guest_whatever_it_does(self):
        for name, code in (("idle", "print('go')"),
                           ("sleep", "print('go')\nimport time\ntime.sleep(600)"),
                           ("call", "print('go')\nmcp_files.never()"),
                           ("hold", "print('go')\ntry:\n    while True: pass\n"
                                    "except BaseException:\n    pass"),
                           ("C code", "import re\nprint('go')\n"
                                      "import ctypes; ctypes.CDLL(None).sleep(600)")):
            for end in ("end of file", "shutdown"):
                with self.subTest(name, end=end):
                    host = self.host(lambda payload: NoAnswer)
                    run_id = host.start(code)
                    host.follow(Run(), run_id, until=lambda run: b"go" in run.output["stdout"])
                    if end == "shutdown":
                        host.send({"type": "shutdown"})
                    else:
                        host.process.stdin.close()
                    self.assertEqual(host.wait(), 0)

    def test_a_host_that_no_longer_reads(self):
        guest = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-u", str(GUEST / "entrypoint.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with guest:
            guest.stdout.readline()
            guest.stdout.close()
            guest.stdin.write(b'{"type":"init","servers":[]}\n'
                              b'{"type":"execute","id":"r","code":"print(1)"}\n')
            guest.stdin.flush()
            self.assertEqual(guest.wait(60), 0)


if __name__ == "__main__":
    unittest.main()
