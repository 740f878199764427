"""matplotlib's figures on their way to a client of an official SDK, from the image for data."""

import base64
import struct
import unittest

import npm_clients
import test_images
from npm_clients import Launcher, SdkClient
from world import World


def setUpModule():
    npm_clients.install()
    test_images.setUpModule()


def png_size(data):
    """Width and height, from a PNG file's first chunk."""
    signature, _, kind, width, height = struct.unpack(">8sI4sII", data[:24])
    if (signature, kind) != (b"\x89PNG\r\n\x1a\n", b"IHDR"):
        raise AssertionError(f"no PNG file: {data[:24]!r}")
    return width, height


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World(MCP_BRIDGE_IMAGE="data")
        cls.client = SdkClient("sdk1")
        cls.client.do("connect", command=Launcher(cls.world).path)

    @classmethod
    def tearDownClass(cls):
        try:
            if cls.client.close() != 0:
                raise AssertionError("the client failed")
        finally:
            cls.world.close()

    def read(self, uri):
        return base64.b64decode(self.client.do("readResource", uri=uri)["contents"][0]["blob"])

    def test_open_figures_are_images_of_the_answer(self):
        result = self.client.run("import matplotlib.pyplot as plt\n"
                                 "plt.figure(figsize=(4, 3), dpi=100); plt.plot([1, 3, 2])\n"
                                 "plt.figure(figsize=(2, 1), dpi=100); plt.title('second')\n"
                                 "'value'")
        structured = result["structuredContent"]
        self.assertEqual((structured["status"], structured["result"]), ("success", "value"))
        self.assertEqual([(each["name"], each["mimeType"]) for each in structured["artifacts"]],
                         [("figure-1.png", "image/png"), ("figure-2.png", "image/png")])
        shown = [base64.b64decode(block["data"]) for block in result["content"]
                 if block["type"] == "image"]
        self.assertEqual([png_size(data) for data in shown], [(400, 300), (200, 100)])
        for each, data in zip(structured["artifacts"], shown):
            self.assertEqual((each["bytes"], self.read(each["uri"])), (len(data), data))

    def test_a_shown_figure_comes_once(self):
        result = self.client.run("import matplotlib.pyplot as plt\n"
                                 "plt.figure(figsize=(3, 2), dpi=50); plt.show()")
        self.assertEqual([png_size(base64.b64decode(block["data"])) for block in result["content"]
                          if block["type"] == "image"], [(150, 100)])
        self.assertNotIn("stderr", result["structuredContent"])


if __name__ == "__main__":
    unittest.main()
