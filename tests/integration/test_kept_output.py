"""Output that is more than an answer shows: all of it is kept and can be read, byte for byte."""

import hashlib
import os
import random
import subprocess
import threading
import time
import unittest

from host import account, as_account, is_root, patience, wait_until
from instances import guests_of
from lifecycle import settle
from resources import MOST, bytes_kept, error_of, read_part, read_whole
from stdio_client import status_field
from world import POOLED, BulkheadTest, World

MEGABYTE = 1_000_000
# What both sides make, a piece at a time: bytes of every kind, no two pieces alike.
PIECES = """
import os, random
source = random.Random(7)
def piece(size=1_000_000):
    return source.randbytes(size)
def write(fd, data):
    while data:
        data = data[os.write(fd, data):]
"""


def pieces(count):
    source = random.Random(7)
    for _ in range(count):
        yield source.randbytes(MEGABYTE)


def high_water(client):
    return int(status_field(client.pid, "VmHWM").split()[0]) * 1024


class Whole(BulkheadTest):
    variables = {"MCP_BRIDGE_SPILL": "1g", "MCP_BRIDGE_ARTIFACTS": "1g", **POOLED}

    def test_200_megabytes_of_any_bytes_come_back_byte_for_byte(self):
        self.run_well("pass")
        before = high_water(self.client)
        answer = self.run_well(PIECES + """
print("the head", flush=True)
for _ in range(200):
    write(1, piece())
print("\\nthe tail")
print("a word", file=__import__("sys").stderr)
""", timeout=100)
        head, tail = b"the head\n", b"\nthe tail\n"
        total = 200 * MEGABYTE + len(head) + len(tail)
        cut = answer["truncated"]["stdout"]
        self.assertEqual(cut["totalBytes"], total)
        self.assertNotIn("keptBytes", cut)
        self.assertTrue(answer["stdout"].startswith("the head\n"))
        self.assertTrue(answer["stdout"].endswith("\nthe tail\n"))
        self.assertEqual(answer["stderr"], "a word\n")
        self.assertNotIn("stderr", answer["truncated"])
        self.assertLess(high_water(self.client), before + 100 * MEGABYTE)
        expected = hashlib.sha256(head)
        for each in pieces(200):
            expected.update(each)
        expected.update(tail)
        whole, place = read_whole(self.client, cut["uri"])
        self.assertEqual((len(whole), place["keptBytes"], place["totalBytes"]), (total, total, total))
        self.assertEqual(hashlib.sha256(whole).hexdigest(), expected.hexdigest())
        for offset, length in ((0, 1), (8, 1), (9, 100), (123_456_789, 4321), (total - 3, 100), (total, 5)):
            data, _ = read_part(self.client, f"{cut['uri']}?offset={offset}&length={length}")
            self.assertEqual(data, whole[offset:offset + length], (offset, length))

    def test_text_comes_as_text_and_joins_to_the_same_bytes(self):
        answer = self.run_well("""
            for number in range(150_000):
                print(f"{number} häßlich €😀")
            """)
        expected = "".join(f"{number} häßlich €😀\n" for number in range(150_000)).encode()
        self.assertGreater(len(expected), 3 * MOST)
        uri = answer["truncated"]["stdout"]["uri"]
        whole, _ = read_whole(self.client, uri)
        self.assertEqual(whole, expected)
        contents = self.client.request("resources/read", {"uri": uri}).result(patience(60))["contents"]
        self.assertIn("text", contents[0])
        self.assertIn(f"{uri}?offset=", contents[1]["text"])
        # A range may begin within a character: then it is bytes.
        start = expected.index("😀".encode()) + 1
        self.assertEqual(read_part(self.client, f"{uri}?offset={start}&length=8")[0],
                         expected[start:start + 8])

    def test_both_streams_apart(self):
        answer = self.run_well("""
            import os
            for number in range(20_000):
                os.write(1, b"out %d \\xff\\n" % number)
                os.write(2, b"err %d \\xfe\\n" % number)
            """)
        for stream, mark in (("stdout", b"out %d \xff\n"), ("stderr", b"err %d \xfe\n")):
            whole, _ = read_whole(self.client, answer["truncated"][stream]["uri"])
            self.assertEqual(whole, b"".join(mark % number for number in range(20_000)))

    def test_little_that_takes_much_to_show(self):
        answer = self.run_well("import os; os.write(1, b'\\x01' * 10_000)")
        cut = answer["truncated"]["stdout"]
        self.assertEqual(read_whole(self.client, cut["uri"])[0], b"\x01" * 10_000)

    def test_a_run_that_is_stopped_keeps_what_it_wrote(self):
        answer = self.run_code("""
            import time
            print("x" * 100_000, flush=True)
            time.sleep(100)
            """, timeout=2)
        self.assertEqual(answer["status"], "timeout")
        whole, _ = read_whole(self.client, answer["truncated"]["stdout"]["uri"])
        self.assertEqual(whole, b"x" * 100_000 + b"\n")

    def test_what_is_unknown_is_not_found(self):
        answer = self.run_well("print('x' * 100_000)")
        uri = answer["truncated"]["stdout"]["uri"]
        errors = [error_of(self.client, each) for each in (
            uri.replace("stdout", "stderr"), "bulkhead://output/" + "0" * 32 + "/stdout",
            uri + "/../stdout", uri + "?offset=-1", "bulkhead://artifacts/" + "0" * 32 + "/stdout")]
        for error in errors:
            self.assertEqual((error["code"], error["message"]), (-32002, errors[0]["message"]))

    def test_output_comes_while_it_is_written(self):
        reply = self.client.start_run("""
import time
for number in range(20):
    print("step", number, "\\x1b[2J", flush=True)
    time.sleep(0.1)
""", meta={"progressToken": "live"})
        reply.result(patience(60))
        texts = [note["params"]["message"] for note in self.client.notifications
                 if note.get("method") == "notifications/progress"
                 and note["params"]["progressToken"] == "live"]
        told = [text for text in texts if text.startswith("step")]
        self.assertGreater(len(told), 1)
        self.assertLess(len(told), 12)
        self.assertIn("step 0 \\u001b[2J", told[0])
        self.assertTrue(all("\x1b" not in text and len(text.encode()) <= 1024 for text in told))


class Bounds(BulkheadTest):
    variables = {"MCP_BRIDGE_SPILL": "2m", "MCP_BRIDGE_ARTIFACTS": "5m", **POOLED}

    def test_the_limit_is_exact_and_said(self):
        reply = self.start(PIECES + "write(1, b'o' * 1_500_000)\nwrite(2, b'e' * 1_500_000)")
        result = reply.result(patience(90))
        answer = result["structuredContent"]
        self.assert_success(answer)
        kept = 0
        for stream, byte in (("stdout", b"o"), ("stderr", b"e")):
            cut = answer["truncated"][stream]
            self.assertEqual(cut["totalBytes"], 1_500_000)
            whole, place = read_whole(self.client, cut["uri"])
            self.assertEqual(whole, byte * len(whole))
            self.assertEqual(place["totalBytes"], 1_500_000)
            if "keptBytes" in cut:
                self.assertEqual(cut["keptBytes"], len(whole))
                self.assertIn("MCP_BRIDGE_SPILL", cut["notKept"])
                self.assertIn("MCP_BRIDGE_SPILL", place["notKept"])
            kept += len(whole)
        self.assertEqual(kept, 2 << 20)
        self.assertIn("MCP_BRIDGE_SPILL", result["content"][0]["text"])

    def test_the_quota_is_never_exceeded_and_the_oldest_go(self):
        most, ended = 0, threading.Event()

        def watch():
            nonlocal most
            while not ended.is_set():
                most = max(most, bytes_kept(self.world))
                time.sleep(0.01)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            uris = [self.run_well(f"print('{number}' * 1_000_000)")["truncated"]["stdout"]["uri"]
                    for number in range(8)]
            replies = [self.start("print('x' * 1_900_000)") for _ in range(4)]
            for reply in replies:
                self.assert_success(self.answer(reply))
        finally:
            ended.set()
            watcher.join()
        self.assertLessEqual(most, 5 << 20)
        self.assertGreater(most, 2 << 20)
        self.assertIsNotNone(error_of(self.client, uris[0]))

    def test_what_is_too_old_is_not_found(self):
        uri = self.run_well("print('x' * 100_000)")["truncated"]["stdout"]["uri"]
        self.assertEqual(len(read_whole(self.client, uri)[0]), 100_001)
        folder = os.path.join(self.world.state, "artifacts", uri.split("/")[3])
        yesterday = time.time() - 24 * 3600 - 60
        os.utime(folder, (yesterday, yesterday))
        self.assertEqual(error_of(self.client, uri)["code"], -32002)

    def test_another_process_reads_and_sweeps_what_this_one_left(self):
        uri = self.run_well("print('x' * 100_000)")["truncated"]["stdout"]["uri"]
        other = self.world.client()
        self.assertEqual(len(read_whole(other, uri)[0]), 100_001)
        self.assertEqual(other.close(), 0)

    def test_what_a_killed_process_left_unfinished_goes_at_the_next_start(self):
        folder = os.path.join(self.world.state, "artifacts")
        victim = self.world.client()
        before = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        victim.start_run("import time\nprint('x' * 1_000_000, flush=True)\ntime.sleep(100)", timeout=110)
        new = wait_until(lambda: set(os.listdir(folder)) - before - {"lock"}, 60, "output is kept")
        # A second start leaves what the living write alone.
        other = self.world.client()
        other.run("pass")
        self.assertTrue(new <= set(os.listdir(folder)))
        self.assertEqual(other.close(), 0)
        victim.process.kill()
        victim.process.wait()
        wait_until(lambda: not guests_of(victim.instance), 60, "the guest has noticed")
        another = self.world.client()
        wait_until(lambda: not new & set(os.listdir(folder)), 30, "it is gone")
        self.assertEqual(another.close(), 0)
        settle(victim.instance)
        self.assertEqual(self.world.command("doctor", "--sweep", seconds=120).returncode, 0)


class FullDisk(unittest.TestCase):
    """What runs leave lies in a file system of 3 MB. Not all of the state folder does: an engine that has a mount
    namespace of its own needn't see what is mounted here."""

    def setUp(self):
        self.world = World(MCP_BRIDGE_ARTIFACTS="1g", **POOLED)
        mount = [] if is_root() else ["sudo", "-n"]
        owner = account()
        folder = os.path.join(self.world.state, "artifacts")
        os.mkdir(folder)
        subprocess.run([*mount, "mount", "-t", "tmpfs", "-o",
                        f"size=3m,mode=700,uid={owner.pw_uid},gid={owner.pw_gid}", "none", folder], check=True)
        self.addCleanup(self.world.close)
        self.addCleanup(subprocess.run, [*mount, "umount", "-l", folder], check=True)
        self.client = self.world.client()

    def test_runs_go_on_and_say_what_is_not_kept(self):
        answer = self.client.run("print('y' * 10_000_000)", wait=patience(90))
        self.assertEqual(answer["status"], "success", answer)
        cut = answer["truncated"]["stdout"]
        self.assertEqual(cut["totalBytes"], 10_000_001)
        self.assertIn("No space left", cut["notKept"])
        whole, place = read_whole(self.client, cut["uri"])
        self.assertEqual((whole, len(whole)), (b"y" * len(whole), cut["keptBytes"]))
        self.assertGreater(len(whole), 1_000_000)
        self.assertEqual(place["totalBytes"], 10_000_001)
        # Nothing at all fits now.
        answer = self.client.run("print('z' * 100_000)\nsave_file('a', b'x' * 10_000)", wait=patience(90))
        self.assertEqual(answer["status"], "success", answer)
        self.assertEqual(answer["truncated"]["artifacts"]["lost"], 1)
        self.assertIn("No space left", answer["truncated"]["artifacts"]["why"])
        self.assertIn("notKept", answer["truncated"]["stdout"])
        self.assertNotIn("artifacts", answer)
        self.assertEqual(read_whole(self.client, cut["uri"])[0], whole)
        # Once there is room, all is as before.
        folder = os.path.join(self.world.state, "artifacts", cut["uri"].split("/")[3])
        as_account("rm", "-r", folder)
        answer = self.client.run("print('w' * 1_000_000)", wait=patience(90))
        self.assertEqual(len(read_whole(self.client, answer["truncated"]["stdout"]["uri"])[0]), 1_000_001)
        self.assertEqual(self.client.close(), 0)


if __name__ == "__main__":
    unittest.main()
