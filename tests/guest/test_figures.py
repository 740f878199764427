"""matplotlib's figures become artifacts; with a stand-in for matplotlib."""
import os
import unittest

import fake_matplotlib
from fake_host import GuestTest, Run
from images import size_and_pixels


class Figures(GuestTest):
    def with_matplotlib(self):
        host = self.host()
        fake_matplotlib.install(host.workspace)
        return host

    def artifacts_of(self, code):
        run = self.with_matplotlib().run("import matplotlib.pyplot as plt\n" + code)
        self.assert_ok(run)
        return [(name, kind, size_and_pixels(data)[0] if kind == "image/png" else None)
                for name, kind, data in run.artifacts]

    def test_open_figures_at_the_end(self):
        self.assertEqual(self.artifacts_of("plt.figure(width=5); plt.figure(width=6)\n"
                                           "save_file('figure-2.png', b'\\x89PNG', 'image/x')"),
                         [("figure-2.png", "image/x", None), ("figure-1.png", "image/png", 5),
                          ("figure-3.png", "image/png", 6)])

    def test_none_without_figures_or_matplotlib(self):
        self.assertEqual(self.artifacts_of("pass"), [])

    def test_shown_figures_are_not_saved_twice(self):
        for code, names in (
                ("f = plt.figure(); display(f)", ["figure-1.png"]),
                ("f, axes = plt.subplots(); display(axes)", ["figure-1.png"]),
                ("plt.figure(); save_image(plt, 'mine.png')", ["mine.png"]),
                ("plt.figure(); save_image(plt.gcf())", ["figure-1.png"]),
                ("plt.figure(); plt.savefig('x.png'); save_file('./x.png')", ["x.png"]),
                ("plt.figure(); plt.savefig('x.png'); save_image('x.png')", ["x.png"]),
                ("plt.figure(); plt.savefig('x.png')", ["figure-1.png"]),
                ("plt.figure(); plt.show(); plt.figure(); plt.show(block=False)",
                 ["figure-1.png", "figure-2.png"]),
                ("plt.figure(); plt.pause(0.01); plt.pause(0.01); assert plt.get_fignums()",
                 ["figure-1.png"]),
                ("from matplotlib.pyplot import *; figure(); show(); assert not get_fignums()",
                 ["figure-1.png"])):
            with self.subTest(code):
                self.assertEqual([name for name, _, _ in self.artifacts_of(code)], names)

    def test_other_formats_by_the_name(self):
        self.assertEqual(self.artifacts_of("save_image(plt.figure(), 'a.svg')"),
                         [("a.svg", "image/svg+xml", None)])

    def test_show_keeps_what_it_says_of_itself(self):
        run = self.with_matplotlib().run("import matplotlib.pyplot as plt\n"
                                         "[plt.show.__name__, plt.show.__doc__]")
        self.assertEqual(run.value, ["show", "Show figures."])

    def test_a_figure_that_fails_is_reported_and_the_others_are_saved(self):
        run = self.with_matplotlib().run("import matplotlib.pyplot as plt\n"
                                         "plt.figure().failure = ValueError('too odd')\n"
                                         "plt.figure(width=7)\n'value'")
        self.assertEqual((run.exit_code, run.value), (0, "value"))
        self.assertEqual(run.stderr, "matplotlib: figure 1 could not be saved: ValueError: too odd\n")
        self.assertEqual([name for name, _, _ in run.artifacts], ["figure-1.png"])
        run = self.with_matplotlib().run("import matplotlib.pyplot as plt\n"
                                         "plt.figure().failure = ValueError('too odd')\n"
                                         "display(plt.gcf())")
        self.assertEqual(run.done["error"]["message"], "too odd")

    def test_figures_of_failed_code_too(self):
        run = self.with_matplotlib().run("import matplotlib.pyplot as plt\nplt.figure()\n1 / 0")
        self.assertEqual((run.exit_code, len(run.artifacts)), (1, 1))

    def test_a_cancelled_run_saves_none_and_leaves_none(self):
        host = self.with_matplotlib()
        run_id = host.start("import matplotlib.pyplot as plt, time\nplt.figure()\nprint('go')\n"
                            "time.sleep(600)", session=True)
        run = host.follow(Run(), run_id, until=lambda run: run.stdout == "go\n")
        host.send({"type": "cancel", "id": run_id})
        run = host.follow(run, run_id)
        self.assertEqual((run.exit_code, run.artifacts), (130, []))
        self.assertEqual(host.run("plt.get_fignums()", session=True).artifacts, [])

    def test_each_run_of_a_session_saves_its_own(self):
        host = self.with_matplotlib()
        for _ in range(2):
            run = host.run("import matplotlib.pyplot as plt\nf = plt.figure()", session=True)
            self.assertEqual([name for name, _, _ in run.artifacts], ["figure-1.png"])
        # A figure that was closed with its run can still be shown.
        run = host.run("display(f)", session=True)
        self.assertEqual([name for name, _, _ in run.artifacts], ["figure-1.png"])

    def test_a_forked_child_saves_none(self):
        run = self.with_matplotlib().run("import os\nimport matplotlib.pyplot as plt\nplt.figure()\n"
                                         "child = os.fork()\nif child: os.waitpid(child, 0)")
        self.assert_ok(run)
        self.assertEqual(len(run.artifacts), 1)

    def test_closed_figures_are_not_kept(self):
        run = self.with_matplotlib().run(
            "import gc, weakref\nimport matplotlib.pyplot as plt\nseen = []\n"
            "for n in range(5):\n    f = plt.figure()\n    seen.append(weakref.ref(f))\n"
            "    f.savefig('%d.png' % n); save_image(f); plt.close('all')\n"
            "del f; gc.collect()\n[each() is None for each in seen]")
        self.assertEqual(run.value, [True] * 5)

    def test_the_environment_suits_a_read_only_container(self):
        run = self.run_code("import os\n[os.environ[n] for n in ('MPLBACKEND', 'MPLCONFIGDIR')]")
        self.assertEqual(run.value, ["Agg", "/tmp/matplotlib"])

    def test_without_matplotlib_its_import_fails_as_ever(self):
        run = self.run_code("import matplotlib.pyplot")
        self.assertEqual(run.done["error"]["message"], "No module named 'matplotlib'")


class FontList(GuestTest):
    def test_what_the_image_has_ready_is_lent(self):
        host = self.host()
        fake_matplotlib.install(host.workspace)
        ready = os.path.join(host.workspace, "ready")
        os.mkdir(ready)
        with open(os.path.join(ready, "fontlist.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        run = host.run("""
            import os
            os.environ["MPLCONFIGDIR"] = "config/matplotlib"
            from mcp import runtime
            figures = runtime._part("bulkhead_figures")
            figures.READY_MADE = os.path.abspath("ready")
            import matplotlib
            open("config/matplotlib/fontlist.json").read()
            """)
        self.assert_ok(run)
        self.assertEqual(run.value, "{}")


if __name__ == "__main__":
    unittest.main()
