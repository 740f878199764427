"""What code hands over to its user: from the sandbox to the client, kept on the host under names of its own."""

import base64
import hashlib
import json
import os
import stat
import struct
import unittest
import zlib

from host import patience
from resources import content_bytes, error_of, listed, read_whole
from world import POOLED, BulkheadTest, World, inside


def png(width=1, height=1):
    """A grey image."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + b"\x80" * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Artifacts(BulkheadTest):
    variables = POOLED

    def result(self, code, **options):
        result = self.start(code, **options).result(patience(90))
        self.assert_success(result["structuredContent"])
        return result

    def test_files_come_back_byte_for_byte(self):
        content = bytes(range(256)) * 100
        result = self.result("""
            save_file("data.bin", bytes(range(256)) * 100)
            save_file("notes é.txt", "some text\\n")
            """)
        kept = {each["name"]: each for each in result["structuredContent"]["artifacts"]}
        self.assertEqual(kept["data.bin"]["bytes"], len(content))
        self.assertEqual(read_whole(self.client, kept["data.bin"]["uri"])[0], content)
        self.assertEqual(read_whole(self.client, kept["notes é.txt"]["uri"])[0], b"some text\n")
        links = [block for block in result["content"] if block["type"] == "resource_link"]
        self.assertEqual([(link["name"], link["uri"]) for link in links],
                         [(name, kept[name]["uri"]) for name in ("data.bin", "notes é.txt")])
        for each in kept.values():
            self.assertIn(each["uri"], result["content"][0]["text"])
            self.assertIn(each["uri"], [resource["uri"] for resource in listed(self.client)])

    def test_a_small_image_is_shown(self):
        image = png(8, 8)
        result = self.result(f"save_file('dot.png', {image!r})")
        blocks = [block for block in result["content"] if block["type"] == "image"]
        self.assertEqual(len(blocks), 1)
        self.assertEqual((blocks[0]["mimeType"], base64.b64decode(blocks[0]["data"])), ("image/png", image))
        self.assertFalse([block for block in result["content"] if block["type"] == "resource_link"])
        self.assertEqual(result["structuredContent"]["artifacts"][0]["name"], "dot.png")

    def test_the_largest_file(self):
        result = self.result("""
            import hashlib, os
            data = os.urandom(12 << 20)
            save_file("large", data)
            print(hashlib.sha256(data).hexdigest())
            """)
        data, _ = read_whole(self.client, result["structuredContent"]["artifacts"][0]["uri"])
        self.assertEqual(hashlib.sha256(data).hexdigest(), result["structuredContent"]["stdout"].strip())

    def test_names_are_no_paths(self):
        names = ["stdout", "lock", "1", "1.json", "..x", "-rf", "a\\b", "%2e%2e", "CON", "💥", "n" * 255]
        result = self.result(f"for name in {names!r}:\n  save_file(name, name)")
        kept = result["structuredContent"]["artifacts"]
        self.assertEqual([each["name"] for each in kept], names)
        for each in kept:
            self.assertEqual(read_whole(self.client, each["uri"])[0], each["name"].encode())
        folder = os.path.join(self.world.state, "artifacts")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        for path, folders, files in os.walk(folder):
            for name in folders:
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(path, name)).st_mode), 0o700)
            for name in files:
                self.assertRegex(name, r"^(lock|(stdout|stderr|\d+)(\.json)?)$")
                self.assertEqual(stat.S_IMODE(os.lstat(os.path.join(path, name)).st_mode), 0o600)

    def test_hostile_names_and_frames_end_the_run_alone(self):
        for name, kind, content in (("../../../../tmp/evil", "a/b", "eA=="), ("a\0b", "a/b", "eA=="),
                                    ("..", "a/b", "eA=="), ("x", "no type", "eA=="), ("x", "a/b", "!"),
                                    ("\x1b]0;t\x07", "a/b", "eA==")):
            frame = {"type": "artifact", "name": name, "mimeType": kind, "b64": content}
            with self.subTest(name=name, kind=kind):
                answer = self.run_code(inside("hostile") + f"""
forge({json.dumps(frame).encode()!r} + b"\\n")
time.sleep(60)
""")
                self.assertEqual((answer["status"], answer["error"]["code"]), ("error", "malformed"), answer)
                self.assertNotIn("artifacts", answer)
        self.assert_still_serves()

    def test_what_a_hostile_guest_sends_beyond_the_limits_is_dropped_and_counted(self):
        frame = {"type": "artifact", "name": "x%d", "mimeType": "a/b", "b64": "eA=="}
        answer = self.run_code(inside("hostile") + f"""
frame = {json.dumps(frame)!r}
forge("".join(frame % number + "\\n" for number in range(300)).encode())
big = {json.dumps(dict(frame, name="big", b64="%s"))!r} % ("A" * (12 << 20))
for _ in range(8):
    forge(big.encode() + b"\\n")
""")
        self.assertEqual(answer["status"], "success", answer)
        self.assertEqual(len(answer["artifacts"]), 64)
        self.assertEqual(answer["truncated"]["artifacts"]["lost"], 300 - 64 + 8)
        self.assertIn("over 64 of a run", answer["truncated"]["artifacts"]["why"])
        self.assert_still_serves()

    def test_files_that_come_with_a_run(self):
        reply = self.client.request("tools/call", {"name": "run_python", "arguments": {
            "code": "print(open('data/in.csv').read())\nprint(open('/workspace/raw', 'rb').read())",
            "files": [{"path": "data/in.csv", "text": "a,é"},
                      {"path": "raw", "b64": base64.b64encode(b"\0\xff").decode()}]}})
        self.assertEqual(self.answer(reply)["stdout"], "a,é\nb'\\x00\\xff'\n")

    def test_large_files_come_along(self):
        content = os.urandom(8 << 20)
        reply = self.client.request("tools/call", {"name": "run_python", "arguments": {
            "code": "import hashlib\nhashlib.sha256(open('big', 'rb').read()).hexdigest()",
            "files": [{"path": "big", "b64": base64.b64encode(content).decode()}]}})
        self.assertEqual(self.answer(reply)["result"], hashlib.sha256(content).hexdigest())

    def test_files_that_would_lie_elsewhere_are_refused(self):
        for path in ("../x", "/etc/passwd", "a/../../b", ""):
            reply = self.client.request("tools/call", {"name": "run_python", "arguments": {
                "code": "1", "files": [{"path": path, "text": ""}]}})
            answer = self.answer(reply)
            self.assertEqual(answer["status"], "validation_error", answer)
            self.assertIn("files", answer["error"]["message"])


class CommandLine(unittest.TestCase):
    def test_run_tells_where_files_lie(self):
        world = World(**POOLED)
        self.addCleanup(world.close)
        with open(world.path("code.py"), "w", encoding="utf-8") as file:
            file.write("save_file('a b.txt', 'content')\nprint('out')")
        world.settle()
        done = world.command("run", world.path("code.py"))
        self.assertEqual((done.returncode, done.stdout), (0, b"out\n"))
        line = next(line for line in done.stderr.decode().splitlines() if "a b.txt" in line)
        path = line.split("): ", 1)[1]
        self.assertTrue(path.startswith(world.state + "/artifacts/"), line)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "content")
        done = world.command("run", "--json", world.path("code.py"))
        entry = json.loads(done.stdout)["artifacts"][0]
        self.assertTrue(entry["uri"].startswith("file://" + world.state), entry)


if __name__ == "__main__":
    unittest.main()
