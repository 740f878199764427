"""Code that floods the host, or does violence to its own processes and files: others are served all the same, and
nothing is left."""

import json
import unittest

from hostile import MEBIBYTE, HostileTest
from world import LONG


class Floods(HostileTest):
    SECONDS = 10 if LONG else 3

    def test_each_stream(self):
        for number, name in ((1, "stdout"), (2, "stderr")):
            with self.subTest(name):
                answer = self.answer(self.attack(
                    f"data = b'f' * 65536\nwhile True: os.write({number}, data)", timeout=self.SECONDS))
                self.assertEqual(answer["status"], "timeout")
                self.assertGreater(answer["truncated"][name]["totalBytes"], MEBIBYTE)
        self.after_attack()

    def test_both_streams_from_several_runs(self):
        replies = [self.attack("""
data = b'f' * 65536
for fd in (1, 2):
    threading.Thread(target=lambda fd=fd: [os.write(fd, data) for _ in iter(int, 1)], daemon=True).start()
time.sleep(600)
""", timeout=self.SECONDS) for _ in range(4)]
        for reply in replies:
            self.assertEqual(self.answer(reply)["status"], "timeout")
        self.after_attack()

    def test_the_containers_own_stderr(self):
        """The log of the engine's command, to which the host listens for diagnoses."""
        answer = self.answer(self.attack("""
log = session()._descriptors.log
while True: os.write(log, b"Error: no such container\\n" * 1000)
""", timeout=self.SECONDS))
        self.assertEqual(answer["status"], "timeout")
        self.after_attack()

    def test_small_frames(self):
        answer = self.answer(self.attack("""
data = b'{"type":"stdout","data":""}\\n{"type":"stderr","data":"x"}\\n' * 2000
while True: forge(data)
""", timeout=self.SECONDS))
        self.assertEqual(answer["status"], "timeout")
        self.after_attack()

    def test_requests_whose_answers_nobody_reads(self):
        """The code stops the guest's process, so the host's answers pile up; a child goes on asking."""
        answer = self.answer(self.attack("""
kept = [os.dup(d) for d in frames_out]
if os.fork() == 0:
    frames_out[:] = kept
    os.kill(os.getppid(), signal.SIGSTOP)
    number = 10_000
    while True:
        data = bytearray()
        for _ in range(1000):
            number += 1
            data += b'{"type":"rpc_request","id":%d,"payload":{"type":"list_tools","server":"open"}}\\n' % number
        forge(bytes(data))
time.sleep(600)
""", timeout=2 * self.SECONDS))
        self.assertIn(answer["status"], ("timeout", "error"))
        if answer["status"] == "error":
            self.assertEqual(answer["error"]["code"], "overloaded")
        self.after_attack()

    def test_large_arguments_that_wait_for_a_slow_server(self):
        answer = self.answer(self.attack("""
for i in range(40):
    forge(call(600 + i, "open", "slow", seconds=1, pad="p" * 15_000_000))
time.sleep(2)
""", timeout=60))
        self.assertIn(answer["status"], ("success", "timeout", "error"))
        self.after_attack()

    def test_other_runs_are_served_meanwhile(self):
        attack = self.attack("data = b'f' * 65536\nwhile True: os.write(1, data)", timeout=2 * self.SECONDS)
        self.assert_still_serves()
        self.assertEqual(self.answer(attack)["status"], "timeout")


class Violence(HostileTest):
    def test_what_code_does_to_its_own_process(self):
        cases = {
            "closes all descriptors": ("os.closerange(0, 4096)\ntime.sleep(600)", "error"),
            "closes the channel": ("for d in frames_out + frames_in: os.close(d)\ntime.sleep(60)", "timeout"),
            "kills itself": ("os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(600)", "error"),
            "ends by SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(600)", "error"),
            "crashes": ("import ctypes\nctypes.string_at(0)", "error"),
            "aborts": ("os.abort()", "error"),
            "stops itself": ("os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)", "timeout"),
            "stops all": ("if os.fork() == 0: time.sleep(60)\nos.kill(-1, signal.SIGSTOP)\n"
                          "os.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
            "kills all": ("if os.fork() == 0: time.sleep(60)\nos.kill(-1, signal.SIGKILL)", "success"),
            "kills init": ("os.kill(1, signal.SIGKILL)\nprint('init lives', flush=True)", "success"),
            "asks init to end": ("os.kill(1, signal.SIGTERM)\ntime.sleep(600)", "error"),
            "becomes another program": ("os.execv('/bin/sleep', ['sleep', '60'])", "timeout"),
            "another program ends": ("os.execv('/bin/true', ['true'])", "success"),
            "breaks the guest": ("session()._channel.close = None", "error"),
            "recursion": ("import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
                          "out_of_memory", "timeout"),  # the second without a memory limit or on a slow machine
            "swallows interrupts": ("while True:\n  try: time.sleep(60)\n  except BaseException: pass", "timeout"),
            "blocks signals": ("signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(60)", "timeout"),
            "holds the interpreter": ("import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')", "timeout"),
            "exits in a thread": ("threading.Thread(target=lambda: os._exit(6)).start()\ntime.sleep(600)", "error"),
            "never ends in atexit": ("import atexit\natexit.register(time.sleep, 600)", "timeout"),
            "never ends in a thread": ("threading.Thread(target=time.sleep, args=(600,)).start()", "timeout"),
        }
        names = list(cases)
        for begin in range(0, len(names), 7):
            # Few seconds for what only a timeout ends; the others are to end well before theirs.
            batch = {name: self.attack(cases[name][0], timeout=4 if "timeout" in cases[name] else 110)
                     for name in names[begin:begin + 7]}
            for name, reply in batch.items():
                with self.subTest(name):
                    answer = self.answer(reply)
                    self.assertIn(answer["status"], cases[name][1:], answer)
                    if answer["status"] != "success":
                        self.assertTrue(answer["error"].get("message"), answer)
        self.after_attack()

    def test_children_end_with_the_run(self):
        answer = self.answer(self.attack("""
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            time.sleep(600)
        os._exit(0)
print("done")
"""))
        self.assert_success(answer)
        self.after_attack()

    def test_messages_for_people_are_harmless(self):
        """What the guest says comes into logs and error texts without escape sequences."""
        answer = self.answer(self.attack("""
os.write(session()._descriptors.log, b"Error: \\x1b]0;title\\x07\\x1b[2J looks bad\\n")
forge(b'{"type":"\\\\u001b[2J\\\\u009b"}\\n')
time.sleep(10)
"""))
        self.assertEqual(answer["status"], "error")
        self.assertNotIn("\x1b", json.dumps(answer, ensure_ascii=False))
        self.assertNotIn("\x1b", self.world.log_of(self.client))


if __name__ == "__main__":
    unittest.main()
