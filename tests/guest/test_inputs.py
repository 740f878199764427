"""Files that come with a run."""
import base64
import os
import unittest

from fake_host import GuestTest


def files(**contents):
    return [{"path": path, "b64": base64.b64encode(content).decode()}
            for path, content in contents.items()]


class Inputs(GuestTest):
    def test_they_are_there_before_the_code(self):
        run = self.host().run("""
            print(open("data/in.csv").read(), open("a.bin", "rb").read(), open("data/x/y").read())
            """, files=files(**{"data/in.csv": b"1,2", "a.bin": b"\0\xff", "data/x/y": b""}))
        self.assert_ok(run)
        self.assertEqual(run.stdout, "1,2 b'\\x00\\xff' \n")

    def test_later_runs_replace_them(self):
        host = self.host()
        code = "text = open('in.txt').read()\nimport os\nos.makedirs('away', exist_ok=True)\n" \
               "os.chdir('away')\ntext"
        self.assertEqual(host.run("import os\n" + code, files=files(**{"in.txt": b"long text"}),
                                  session=True).value, "long text")
        self.assertEqual(host.run("open('../in.txt').read()", files=files(**{"in.txt": b"new"}),
                                  session=True).value, "new")

    def test_what_cannot_be_written(self):
        host = self.host()
        outside = os.path.join(os.path.dirname(host.workspace), "bulkhead-outside")
        self.assertFalse(os.path.exists(outside))
        self.assert_ok(host.run("""
            import os
            os.symlink("/tmp", "link"); os.symlink("/tmp/bulkhead-outside", "file")
            os.symlink("elsewhere", "dangling"); os.mkdir("folder"); os.mkfifo("pipe")
            open("plain", "w").close()
            """))
        for path, kind, words in (
                ("/tmp/bulkhead-outside", "OSError", "relative"),
                ("../bulkhead-outside", "OSError", "relative"),
                ("a/../../bulkhead-outside", "OSError", "relative"),
                ("./a", "OSError", "relative"), ("a//b", "OSError", "relative"),
                ("", "OSError", "relative"), ("a/", "OSError", "relative"),
                ("a\0b", "OSError", "null"),
                ("link/bulkhead-outside", "OSError", "link"), ("file", "OSError", "link"),
                ("dangling", "OSError", "link"), ("dangling/x", "OSError", "link"),
                ("folder", "IsADirectoryError", "directory"), ("pipe", "OSError", ""),
                ("plain/x", "NotADirectoryError", "directory"),
                ("x" * 256, "OSError", "too long")):
            with self.subTest(path):
                run = host.run("print('not reached')", files=files(**{"good": b"", path: b"x"}))
                self.assertEqual((run.exit_code, run.stdout, run.done["error"]["type"]),
                                 (1, "", kind))
                message = run.done["error"]["message"]
                self.assertIn(words, message)
                self.assertIn(repr(path), message)
                self.assertIn("input file", message)
                self.assertNotIn("bulkhead_inputs", run.stderr)
        self.assertFalse(os.path.exists(outside))
        self.assertEqual(host.run("'on'").value, "on")


if __name__ == "__main__":
    unittest.main()
