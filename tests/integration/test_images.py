"""The image's profiles: building and choosing one, and what code finds in the one for data."""

import subprocess
import unittest

from host import patience
from world import BINARY, BulkheadTest, World

BUILD_SECONDS = 300


def setUpModule():
    """Makes the image for data, unless it is there and current."""
    world = World()
    try:
        done = world.command("image", "build", "--profile", "data", seconds=BUILD_SECONDS)
        if done.returncode != 0:
            raise AssertionError("the image for data can't be made: " + done.stderr.decode())
    finally:
        world.close()


class Choosing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World()

    @classmethod
    def tearDownClass(cls):
        cls.world.close()

    def test_an_image_that_is_current_is_not_built_again(self):
        for arguments, variables in ((("--profile", "data"), {}), ((), {"MCP_BRIDGE_IMAGE": "data"})):
            with self.subTest(arguments):
                done = self.world.command("image", "build", *arguments, **variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"localhost/bulkhead-sandbox:data is up to date (profile data", done.stderr)

    def test_unknown_profiles(self):
        done = self.world.command("image", "build", "--profile", "dta")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        for word in (b"--profile", b"dta", b"minimal", b"data"):
            self.assertIn(word, done.stderr)
        done = self.world.command("run", "-", input=b"1", MCP_BRIDGE_IMAGE="dta")
        self.assertEqual(done.returncode, 125)
        for word in (b'"dta"', b"bulkhead image build", b"minimal", b"data"):
            self.assertIn(word, done.stderr)

    def test_a_profile_is_not_pulled(self):
        done = self.world.command("image", "build", "--profile", "data", "--pull")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--pull", done.stderr)

    def test_help_says_what_is_in_them(self):
        done = subprocess.run([BINARY, "image", "build", "--help"], capture_output=True,
                              timeout=patience(20))
        for word in (b"--profile", b"minimal", b"numpy", b"MCP_BRIDGE_IMAGE=data"):
            self.assertIn(word, done.stdout)

    def test_the_minimal_one_has_no_packages(self):
        done = self.world.command("run", "-", input=b"import numpy", MCP_BRIDGE_IMAGE="minimal")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No module named 'numpy'", done.stderr)


class Data(BulkheadTest):
    variables = {"MCP_BRIDGE_IMAGE": "data"}

    def test_its_packages_work(self):
        answer = self.run_well("""
            import io
            import numpy, pandas, scipy.optimize, PIL.Image
            frame = pandas.read_csv(io.StringIO("a,b\\n1,2\\n3,4\\n"), index_col="a")
            root = scipy.optimize.brentq(lambda x: x * x - 2, 0, 2)
            [int(numpy.arange(4).reshape(2, 2).trace()), frame.b.sum().item(), round(root, 6),
             PIL.Image.new("RGB", (3, 2)).size]
            """)
        self.assertEqual(answer["result"], [3, 6, 1.414214, [3, 2]])
        self.assertNotIn("stderr", answer)

    def test_matplotlib_draws_without_a_word_and_without_looking_for_fonts(self):
        answer = self.run_well("""
            import os, subprocess, sys
            import matplotlib.font_manager
            import matplotlib.pyplot as plt
            folder = os.environ["MPLCONFIGDIR"]
            lists = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("fontlist")]
            figure, axes = plt.subplots(figsize=(3, 2), dpi=50)
            axes.plot([1, 2]); axes.set_title("title")
            figure.savefig("plot.png")
            plt.close(figure)
            import PIL.Image
            child = subprocess.run([sys.executable, "-c", "import matplotlib; print(matplotlib.get_backend())"],
                                   capture_output=True, text=True)
            [plt.get_backend().lower(), [os.path.islink(each) for each in lists],
             PIL.Image.open("plot.png").size, child.stdout.lower(), child.stderr]
            """)
        self.assertEqual(answer["result"], ["agg", [True], [150, 100], "agg\n", ""])
        self.assertNotIn("stderr", answer)

    def test_arrays_become_the_png_files_that_others_read(self):
        # PIL reads what the guest's own encoder wrote.
        answer = self.run_well("""
            import io
            import numpy as np, PIL.Image
            from mcp import runtime
            png_of = runtime._part("bulkhead_images").png_of
            def read(array):
                image = PIL.Image.open(io.BytesIO(png_of(array)))
                return image.mode, np.asarray(image)
            random = np.random.default_rng(1)
            found = []
            for shape, mode in (((5, 7), "L"), ((5, 7, 1), "L"), ((5, 7, 2), "LA"), ((5, 7, 3), "RGB"),
                                ((300, 200, 4), "RGBA")):
                pixels = random.integers(0, 256, shape, dtype=np.uint8)
                for array in (pixels, pixels.astype("int64"), pixels / 255, (pixels / 255).astype("float32"),
                              np.asfortranarray(pixels), pixels[::-1, ::-1][::-1, ::-1]):
                    kind, back = read(array)
                    found.append(kind == mode and np.array_equal(back.reshape(shape), pixels))
            kind, back = read(np.array([[True, False]]))
            refused = []
            for odd in (np.array([[1.5]]), np.array([[float("nan")]]), np.array([[-1]]), np.array([[256]]),
                        np.zeros(3), np.zeros((0, 5)), np.array([["a"]]), np.array([[1j]])):
                try: png_of(odd)
                except (ValueError, TypeError) as error: refused.append(type(error).__name__)
            [all(found), len(found), back.tolist(), refused]
            """)
        self.assertEqual(answer["result"], [True, 30, [[255, 0]], ["ValueError"] * 6 + ["TypeError"] * 2])

    def test_pandas_and_pil_objects_offer_what_display_wants(self):
        answer = self.run_well("""
            import pandas, PIL.Image
            from mcp import runtime
            offers = runtime._part("bulkhead_display")._offers
            [[each[0] for each in offers(pandas.DataFrame({"a": [1]}))],
             [each[0] for each in offers(PIL.Image.new("RGB", (3, 2)))][:1]]
            """)
        self.assertEqual(answer["result"], [["text/html"], ["image/png"]])


if __name__ == "__main__":
    unittest.main()
