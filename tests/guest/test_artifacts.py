"""Files for the user: names, types, limits, the ways they are sent, and what `display` makes."""
import json
import time
import unittest

from fake_host import GuestTest, Run
from images import size_and_pixels

PNG = (b"\x89PNG\r\n\x1a\n" + b"rest of it")


def brief(run):
    return [(name, kind) for name, kind, _ in run.artifacts]


class Files(GuestTest):
    def test_content_and_types(self):
        run = self.run_code(r"""
            import io
            names = [save_file("a.csv", "x,y\n1,2\n"), save_file("b.bin", b"\0\xff"),
                     save_file("c", "no extension, ü"), save_file("d", b"\0"),
                     save_file("e.txt", bytearray(b"array")), save_file("f.json", io.StringIO("{}")),
                     save_file("g.md", "# x"), save_file("h.csv.gz", b"\x1f"),
                     save_file("data/sub/i.txt", memoryview(b"name only")),
                     save_file("j.csv", "", mime_type="application/x-own"),
                     save_file("k", "lone \ud800"), save_file("l", "", "text/html; charset=utf-8")]
            names
            """)
        self.assert_ok(run)
        self.assertEqual(run.artifacts, [
            ("a.csv", "text/csv", b"x,y\n1,2\n"), ("b.bin", "application/octet-stream", b"\0\xff"),
            ("c", "text/plain", "no extension, ü".encode()),
            ("d", "application/octet-stream", b"\0"), ("e.txt", "text/plain", b"array"),
            ("f.json", "application/json", b"{}"), ("g.md", "text/markdown", b"# x"),
            ("h.csv.gz", "application/gzip", b"\x1f"), ("i.txt", "text/plain", b"name only"),
            ("j.csv", "application/x-own", b""), ("k", "text/plain", "lone \ufffd".encode()),
            ("l", "text/html; charset=utf-8", b"")])
        self.assertEqual(run.value, [name for name, _, _ in run.artifacts])

    def test_existing_files(self):
        run = self.run_code("""
            import os, pathlib
            os.mkdir("out")
            with open("out/table.csv", "w") as file: file.write("1,2")
            [save_file("out/table.csv"), save_file(pathlib.Path("out") / "table.csv")]
            """)
        self.assert_ok(run)
        self.assertEqual(run.artifacts, [("table.csv", "text/csv", b"1,2"),
                                         ("table-2.csv", "text/csv", b"1,2")])

    def test_names_are_unique_in_a_run(self):
        host = self.host()
        run = host.run("[save_file(n, '') for n in ('p.png', 'p.png', 'p-2.png', 'p.png', 'x', 'x', "
                       "'t.tar.gz', 't.tar.gz', 'ü' * 125 + '.py', 'ü' * 125 + '.py')]")
        self.assertEqual(run.value, ["p.png", "p-2.png", "p-2-2.png", "p-3.png", "x", "x-2",
                                     "t.tar.gz", "t-2.tar.gz", "ü" * 125 + ".py",
                                     "ü" * 125 + "-2.py"])
        self.assertEqual(host.run("save_file('p.png', '')").value, "p.png")

    def test_what_cannot_be_saved(self):
        host = self.host()
        for code, kind, words in (
                ("save_file('none.txt')", "FileNotFoundError", "none.txt"),
                ("save_file('.')", "IsADirectoryError", "zip"),
                ("save_file('/dev/zero')", "OSError", "regular"),
                ("import os; os.mkfifo('pipe'); save_file('pipe')", "OSError", "regular"),
                ("save_file('..', '')", "ValueError", "no name"),
                ("save_file('x/', '')", "ValueError", "no name"),
                ("save_file('a\\nb', '')", "ValueError", "control"),
                ("save_file('a\\x9fb', '')", "ValueError", "control"),
                ("save_file('a\\0b', '')", "ValueError", "control"),
                ("save_file('\\ud800', '')", "ValueError", "Unicode"),
                ("save_file('x' * 256, '')", "ValueError", "255"),
                ("save_file('x', {'a': 1})", "TypeError", "json.dumps"),
                ("save_file(5, '')", "TypeError", "path"),
                ("save_file('x', '', 'text')", "ValueError", "MIME"),
                ("save_file('x', '', 'text/plain; charset=latin-1')", "ValueError", "MIME"),
                ("save_file('x', '', '.text/plain')", "ValueError", "MIME"),
                ("save_file('x', '', 5)", "ValueError", "MIME"),
                ("save_file('x', '', 'a/' + 'b' * 126)", "ValueError", "127")):
            with self.subTest(code):
                run = host.run(code)
                self.assertEqual(run.done["error"]["type"], kind)
                self.assertIn(words, run.done["error"]["message"])
                self.assertEqual(run.artifacts, [])

    def test_limits(self):
        host = self.host(limits={"artifactBytes": 1000, "artifactsBytes": 2500, "artifacts": 4})
        run = host.run("""
            import errno
            with open("large.bin", "wb") as file: file.write(bytes(1001))
            def attempt(*arguments):
                try:
                    return save_file(*arguments)
                except OSError as error:
                    return [errno.errorcode[error.errno], str(error)]
            [attempt("large.bin"), attempt("large.bin", bytes(1001)), attempt("a", bytes(1000)),
             attempt("b", bytes(1000)), attempt("c", bytes(501)), attempt("d", bytes(499)),
             attempt("e", b""), attempt("f", b"")]
            """)
        self.assert_ok(run)
        large, also, a, b, c, d, e, f = run.value
        self.assertEqual((large, also), ([large[0], large[1]],) * 2)
        self.assertEqual((large[0], a, b, c[0], d, e, f[0]),
                         ("EFBIG", "a", "b", "EDQUOT", "d", "e", "EDQUOT"))
        for text, parts in ((large[1], ("1001", "1000", "large.bin", "split")),
                            (c[1], ("501", "2500", "500", "'c'")), (f[1], ("4 files", "'f'"))):
            for part in parts:
                self.assertIn(part, text)
        # They are limits of a run.
        self.assertEqual(brief(host.run("save_file('a', bytes(1000))")),
                         [("a", "application/octet-stream")])

    def test_the_default_limit_of_one(self):
        run = self.run_code("save_file('a', bytes(12 << 20))\nsave_file('b', bytes((12 << 20) + 1))")
        self.assertEqual([len(data) for _, _, data in run.artifacts], [12 << 20])
        self.assertEqual(run.done["error"]["type"], "OSError")

    def test_the_names_are_there_in_every_way(self):
        run = self.run_code("import mcp.runtime as r\nfrom mcp.runtime import *\n"
                            "[r.save_file is save_file, r.display is display,\n"
                            " r.save_image is save_image]")
        self.assertEqual(run.value, [True] * 3)

    def test_nothing_is_loaded_for_code_that_saves_nothing(self):
        run = self.run_code("import sys\n[n for n in sys.modules if n.startswith('bulkhead_')]")
        self.assertEqual({"bulkhead_artifacts", "bulkhead_images", "bulkhead_figures",
                          "bulkhead_display", "bulkhead_inputs"}.intersection(run.value), set())


class Sending(GuestTest):
    def test_in_order_from_threads_and_loops(self):
        run = self.run_code("""
            import asyncio
            from concurrent.futures import ThreadPoolExecutor
            async def main():
                return save_file("loop", "")
            await main()
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda n: save_file("t.txt", str(n)), range(40)))
            await mcp_files.read()
            """)
        self.assert_ok(run)
        self.assertEqual(run.artifacts[0][0], "loop")
        self.assertEqual(sorted(data for _, _, data in run.artifacts[1:]),
                         sorted(str(n).encode() for n in range(40)))
        self.assertEqual(len({name for name, _, _ in run.artifacts}), 41)

    def test_a_forked_child_cannot_and_corrupts_nothing(self):
        run = self.run_code("""
            import os
            save_file("before", "")
            child = os.fork()
            if not child:
                try:
                    save_file("x", "y" * 100_000)
                except Exception as error:
                    print(type(error).__name__, error.code)
                os._exit(4)
            status = os.WEXITSTATUS(os.waitpid(child, 0)[1])
            save_file("after", "")
            status
            """)
        self.assert_ok(run)
        self.assertEqual((run.stdout, run.value), ("MCPError closed\n", 4))
        self.assertEqual([name for name, _, _ in run.artifacts], ["before", "after"])

    def test_a_thread_between_two_runs_cannot(self):
        host = self.host()
        host.run("""
            import threading, time
            codes = []
            begun, go_on = threading.Event(), threading.Event()
            def work():
                save_file("in", "")
                begun.set()
                go_on.wait()
                time.sleep(0.1)
                try: save_file("late", "")
                except Exception as error: codes.append([type(error).__name__, error.code])
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            begun.wait()
            """)
        host.run("go_on.set()")
        with self.assertRaises(AssertionError):
            host.next_frame(timeout=0.4)
        run = host.run("thread.join(60)\ncodes")
        self.assertEqual((run.artifacts, run.value), ([], [["MCPError", "closed"]]))

    def test_an_interrupt_cuts_no_frame(self):
        for _ in range(5):
            host = self.host(limits={"artifactsBytes": 1 << 40, "artifacts": 1 << 20})
            run_id = host.start("print('go')\nwhile True: save_file('x', bytes(300_000))")
            run = host.follow(Run(), run_id, until=lambda run: len(run.artifacts) > 3)
            host.send({"type": "cancel", "id": run_id})
            self.assertEqual(host.follow(run, run_id).exit_code, 130)
            self.assertEqual({len(data) for _, _, data in run.artifacts}, {300_000})

    def test_a_host_that_does_not_read_stops_the_code(self):
        host = self.host(limits={"artifactsBytes": 1 << 40, "artifacts": 1 << 20})
        host._frames.maxsize = 1  # the reader of the pipe stops
        run_id = host.start("import resource\n"
                            "for _ in range(20): save_file('x', bytes(8 << 20))\n"
                            "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss")
        time.sleep(0.3)
        run = host.follow(Run(), run_id)
        self.assertEqual(len(run.artifacts), 20)
        self.assertLess(run.value, 160 << 10)  # KiB


class Display(GuestTest):
    def test_kinds(self):
        run = self.run_code(r"""
            import base64
            PNG = b"\x89PNG\r\n\x1a\n" + b"rest of it"
            class Text:
                def __repr__(self): return "<text>"
            class Png(Text):
                def _repr_png_(self): return PNG
                def _repr_html_(self): return "<b>not this</b>"
            class Jpeg(Text):
                def _repr_jpeg_(self): return (base64.b64encode(b"\xff\xd8\xff").decode(), {})
            class Svg(Text):
                def _repr_svg_(self): return "<svg/>"
            class Html(Text):
                def _repr_html_(self): return "<p>ü</p>"
            class Markdown(Text):
                def _repr_markdown_(self): return "# x"
            class Json(Text):
                def _repr_json_(self): return {"a": 1}
            class Bundle(Text):
                def _repr_mimebundle_(self, include=None, exclude=None):
                    return {"text/plain": "t", "image/png": base64.b64encode(PNG).decode()}, {}
            class Nothing(Text):
                def _repr_png_(self): return None
            class Odd(Text):
                def __getattr__(self, name): return lambda *_, **__: "anything"
            display(Png(), Jpeg(), Svg(), Html(), Markdown(), Json(), Bundle(), Nothing(), Odd())
            """)
        self.assert_ok(run)
        self.assertEqual(run.artifacts, [
            ("image.png", "image/png", PNG), ("image.jpg", "image/jpeg", b"\xff\xd8\xff"),
            ("image.svg", "image/svg+xml", b"<svg/>"),
            ("output.html", "text/html", "<p>ü</p>".encode()),
            ("output.md", "text/markdown", b"# x"),
            ("output.json", "application/json", b'{\n  "a": 1\n}'),
            ("image-2.png", "image/png", PNG)])
        self.assertEqual(run.value, [name for name, _, _ in run.artifacts] + [None, None])
        self.assertEqual(run.stdout, "<text>\n" * 3)  # HTML's, Nothing's and Odd's

    def test_plain_values(self):
        run = self.run_code("""
            [display({"a": [1, "ü"]}), display([1]), display("text"), display(5), display(int),
             display({1: {2}}), display([float("nan")]), display(mcp_files), display(), display(None)]
            """)
        self.assert_ok(run)
        self.assertEqual(run.value, ["output.json", "output-2.json"] + [None] * 8)
        self.assertEqual(json.loads(run.artifacts[0][2]), {"a": [1, "ü"]})
        self.assertEqual(run.stdout.splitlines()[:5], ["text", "5", "<class 'int'>", "{1: {2}}",
                                                       "[nan]"])
        self.assertEqual(run.requests, [])


class Images(GuestTest):
    def test_bytes_and_paths(self):
        run = self.run_code(r"""
            PNG = b"\x89PNG\r\n\x1a\n" + b"rest of it"
            with open("photo.dat", "wb") as file: file.write(b"\xff\xd8\xff\xe0")
            [save_image(PNG), save_image(PNG, "a.png"), save_image(bytearray(PNG), "b.jpg"),
             save_image("photo.dat"), save_image(b"GIF89a", "c"), save_image(b"<svg></svg>"),
             save_image(b"RIFF1234WEBPVP8 ", "d.webp")]
            """)
        self.assert_ok(run)
        self.assertEqual(brief(run), [
            ("image.png", "image/png"), ("a.png", "image/png"), ("b.jpg.png", "image/png"),
            ("photo.dat.jpg", "image/jpeg"), ("c.gif", "image/gif"), ("image.svg", "image/svg+xml"),
            ("d.webp", "image/webp")])
        self.assertEqual(run.value, [name for name, _ in brief(run)])

    def test_arrays(self):
        for channels in (None, 1, 2, 3, 4):
            with self.subTest(channels):
                shape = [2, 3] + ([channels] if channels else [])
                run = self.run_code("data = bytes(range(%d))\n"
                                    "save_image(memoryview(data).cast('B', %r), 'a.png')"
                                    % (6 * (channels or 1), shape))
                self.assert_ok(run)
                self.assertEqual(size_and_pixels(run.artifacts[0][2]),
                                 (3, 2, channels or 1, bytes(range(6 * (channels or 1)))))

    def test_an_object_like_those_of_pil(self):
        run = self.run_code(r"""
            class Image:
                mode = "CMYK"
                def save(self, file, format):
                    if self.mode == "CMYK" and format == "PNG": raise OSError("cannot write CMYK")
                    file.write({"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff"}[format])
                def convert(self, mode):
                    other = Image(); other.mode = mode
                    return other
            [save_image(Image()), save_image(Image(), "a.jpeg")]
            """)
        self.assert_ok(run)
        self.assertEqual(brief(run), [("image.png", "image/png"), ("a.jpeg", "image/jpeg")])

    def test_what_is_no_image(self):
        host = self.host()
        for code, kind, words in (
                ("save_image(5)", "TypeError", "int is no image"),
                ("save_image([[1]])", "TypeError", "list is no image"),
                ("save_image(b'text')", "ValueError", "PNG"),
                ("save_image('none.png')", "FileNotFoundError", "none.png"),
                ("save_image(b'GIF8', 5)", "TypeError", "name"),
                ("save_image(memoryview(b'abc'))", "ValueError", "dimensions"),
                ("save_image(memoryview(bytes(10)).cast('B', [1, 2, 5]))", "ValueError", "channels"),
                ("save_image(memoryview(bytes(16)).cast('d', [1, 2]))", "ValueError", "format 'd'")):
            with self.subTest(code):
                run = host.run(code)
                self.assertEqual((run.done["error"]["type"], run.artifacts), (kind, []))
                self.assertIn(words, run.done["error"]["message"])


if __name__ == "__main__":
    unittest.main()
