"""Output: bytes of any kind, from anyone, in order, all of it before `done` and none after."""
import time
import unittest

from fake_host import GuestTest, Run, bytes_of


class Output(GuestTest):
    def test_text_bytes_and_children_arrive_in_order(self):
        run = self.run_code("""
            import os, subprocess, sys
            print("one")
            os.write(1, b"two\\n")
            subprocess.run(["sh", "-c", "echo three; echo oops >&2"])
            sys.stdout.write("four")
            os.system("echo five")
            sys.stdout.buffer.write(b"six\\n")
            import ctypes
            libc = ctypes.CDLL(None)
            libc.write(1, b"seven\\n", 6)
            print("eight", end="")
            """)
        self.assertEqual(run.stdout, "one\ntwo\nthree\nfourfive\nsix\nseven\neight")
        self.assertEqual(run.stderr, "oops\n")
        self.assertEqual(run.exit_code, 0)

    def test_what_looks_like_a_frame_is_output(self):
        text = '{"type":"done","id":"run-1","exitCode":0}\n123\n\n{}\n'
        run = self.run_code("import os\nos.write(1, %r)\nos.system('echo 123')\nprint()" %
                            text.encode())
        self.assertEqual(run.stdout, text + "123\n\n")
        self.assertEqual(run.done, {"type": "done", "id": "run-1", "exitCode": 0})

    def test_characters_are_not_split(self):
        run = self.run_code("""
            import os, time
            data = "é€😀".encode() * 20001
            for start in range(0, len(data), 65537):
                os.write(1, data[start:start + 65537])
            os.write(1, "😀".encode()[:2])
            time.sleep(0.02)
            os.write(1, "😀".encode()[2:])
            """)
        self.assertEqual(run.stdout, "é€😀" * 20001 + "😀")
        self.assertFalse([frame for frame in run.frames if "b64" in frame])

    def test_bytes_that_are_not_utf8_are_kept(self):
        data = bytes(range(256)) * 1000 + b"\xf0\x9f"
        run = self.run_code("import os\nos.write(2, bytes(range(256)) * 1000 + b'\\xf0\\x9f')")
        self.assertEqual(run.output["stderr"], data)
        self.assertTrue(any("b64" in frame for frame in run.frames))

    def test_lone_surrogates_never_raise(self):
        run = self.run_code("""
            import sys
            print("a\\ud800b")
            sys.stderr.write("\\udcff")
            "x\\ud800"
            """)
        self.assertEqual((run.stdout, run.stderr), ("a\\ud800b\n", "\\udcff"))
        self.assertEqual(run.done["result"], {"repr": "'x\\ud800'", "value": "x\ufffd"})

    def test_no_limit_to_a_line_and_chunks_are_bounded(self):
        run = self.run_code("""
            print("x" * 3_000_000)
            import os
            os.write(1, b"\\0" * 500_000)
            """)
        self.assertEqual(run.stdout, "x" * 3_000_000 + "\n" + "\0" * 500_000)
        chunks = [frame for frame in run.frames if frame["type"] == "stdout"]
        self.assertLessEqual(max(len(bytes_of(chunk)) for chunk in chunks), 65536)

    def test_control_characters_stay_within_the_frame_limit(self):
        run = self.run_code("import os\nos.write(1, b'\\x01' * 200_000)",
                            limits={"outputChunkBytes": 10_000})
        self.assertEqual(run.output["stdout"], b"\x01" * 200_000)
        self.assertLessEqual(max(len(frame["data"]) * 6 for frame in run.frames[:-1]), 10_000)

    def test_large_output_is_quick(self):
        run = self.run_code("""
            import os, subprocess
            line = b"x" * 79 + b"\\n"
            for _ in range(100):
                os.write(1, line * 2000)
            for number in range(30_000):
                print("line", number)
            """)
        self.assertEqual(len(run.output["stdout"]), 100 * 2000 * 80
                         + sum(len("line %d\n" % number) for number in range(30_000)))
        self.assertLess(run.seconds, 30)

    def test_host_that_does_not_read_blocks_the_writer_and_memory_stays(self):
        host = self.host()
        # Nobody takes frames from a queue that is full.
        host._frames.maxsize = 4
        run_id = host.start("import os\nfor _ in range(500): os.write(1, b'x' * 65536)\n'end'")
        grown = self._settled_memory(host.process.pid)
        self.assertLess(grown, 40 * 1024)
        run = host.follow(Run(), run_id)
        self.assertEqual(len(run.output["stdout"]), 500 * 65536)
        self.assertEqual(run.value, "end")

    def _settled_memory(self, pid):
        """Resident KiB of a process, once its system calls have stopped moving bytes."""
        moved = None
        for _ in range(100):
            with open("/proc/%d/io" % pid) as io:
                now = io.read().split("rchar: ")[1].split()[0]
            if now == moved and int(now) > 65536:
                break
            moved = now
            time.sleep(0.1)
        else:
            self.fail("the guest went on writing")
        with open("/proc/%d/status" % pid) as status:
            return int(status.read().split("VmRSS:")[1].split()[0])

    def test_all_output_comes_before_done_and_none_after(self):
        host = self.host()
        run = host.run("""
            import subprocess, threading, time
            subprocess.Popen(["sh", "-c", "i=0; while [ $i -lt 200 ]; do echo survivor; i=$((i+1));"
                              " sleep 0.01; done"])
            def chatter():
                while True:
                    print("thread")
                    time.sleep(0.001)
            threading.Thread(target=chatter, daemon=True).start()
            print("y" * 900_000)
            """)
        self.assertIn("y" * 1000, run.stdout)
        self.assertGreaterEqual(run.stdout.count("y"), 900_000)
        with self.assertRaises(AssertionError):
            host.next_frame(timeout=0.2)

    def test_a_survivor_that_never_stops_does_not_keep_the_run_open(self):
        host = self.host()
        run = host.run("""
            import subprocess
            child = subprocess.Popen(["yes"])
            print("said")
            """)
        self.assertIn("said", run.stdout)
        again = host.run("child.kill(); child.wait()")
        self.assertEqual(again.exit_code, 0)

    def test_replaced_and_closed_streams(self):
        host = self.host()
        run = host.run("""
            import io, sys
            sys.stdout = io.StringIO()
            print("hidden")
            sys.__stdout__.write("shown")
            """)
        self.assertEqual((run.stdout, run.exit_code), ("shown", 0))
        self.assertEqual(host.run("print('back')").stdout, "back\n")
        self.assertEqual(host.run("sys.stdout.close(); sys.stderr = None; 1/0").exit_code, 1)
        self.assertEqual(host.run("print('back')").stdout, "back\n")

    def test_a_buffered_stream_in_place_of_stdout_is_flushed(self):
        run = self.run_code("""
            import sys
            sys.stdout = open(1, "w", buffering=100_000, closefd=False)
            print("kept back")
            """)
        self.assertEqual(run.stdout, "kept back\n")

    def test_closed_descriptors(self):
        host = self.host()
        run = host.run("""
            import os
            print("before")
            os.close(1)
            os.close(2)
            "end"
            """)
        self.assertEqual((run.stdout, run.value), ("before\n", "end"))
        run = host.run("print('after'); os.closerange(0, 256); 5")
        self.assertEqual((run.stdout, run.value), ("after\n", 5))

    def test_print_to_a_closed_descriptor_fails_as_in_python(self):
        run = self.run_code("import os\nos.close(1)\nprint('lost')")
        self.assertEqual((run.exit_code, run.done["error"]["type"]), (1, "OSError"))

    def test_duplicated_descriptors_still_count(self):
        run = self.run_code("""
            import os
            saved = os.dup(1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            print("to null")
            os.dup2(saved, 1)
            print("to stdout")
            """)
        self.assertEqual(run.stdout, "to stdout\n")

    def test_a_child_that_makes_the_pipe_nonblocking_loses_nothing(self):
        run = self.run_code("""
            import os
            os.set_blocking(1, False)
            print("x" * 5_000_000)
            """)
        self.assertEqual(len(run.stdout), 5_000_001)

    def test_a_signal_during_a_large_write_loses_nothing(self):
        run = self.run_code("""
            import signal
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            print("x" * 8_000_000)
            signal.setitimer(signal.ITIMER_REAL, 0)
            """)
        self.assertEqual(len(run.stdout), 8_000_001)

    def test_input_is_empty(self):
        run = self.run_code("import sys\nprint(repr(sys.stdin.read()))\ninput()")
        self.assertEqual((run.stdout, run.done["error"]["type"]), ("''\n", "EOFError"))


if __name__ == "__main__":
    unittest.main()
