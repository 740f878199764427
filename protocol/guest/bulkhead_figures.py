"""matplotlib's figures: `show` and the end of a run make artifacts of those that are open.

Loaded when code imports matplotlib, which this module itself never does.
"""
import io
import os
import sys
import time
from _weakref import ref as weak_reference

from bulkhead_artifacts import of_this_run, send
from bulkhead_report import print_error

# Where an image keeps what matplotlib found out about its fonts, which else takes it a second.
READY_MADE = "/usr/share/bulkhead/matplotlib"

# References are weak: whoever draws a thousand figures and closes them needs the memory of one.
_shown = []  # open figures that have become artifacts
_files = {}  # real path of a file that a figure was saved to: the figure


def prepare():
    """matplotlib is about to be imported: lend it the image's list of fonts."""
    folder = os.environ.get("MPLCONFIGDIR")
    try:
        names = os.listdir(READY_MADE)
        os.makedirs(folder, exist_ok=True)
        for name in names:
            os.symlink(os.path.join(READY_MADE, name), os.path.join(folder, name))
    except (OSError, TypeError):
        pass  # Another image, or done already: then matplotlib looks for itself.


def take_over(pyplot):
    """`show` has no window to open here: it makes artifacts. And who saves a figure to a file, and
    then that file for the user, doesn't want the figure a second time."""
    from functools import wraps

    Figure = sys.modules["matplotlib.figure"].Figure
    save = Figure.savefig

    @wraps(pyplot.show)
    def show(*args, **options):
        save_open(pyplot)

    @wraps(pyplot.pause)
    def pause(interval):
        time.sleep(interval)  # it would show the figures, once for each step of an animation

    @wraps(save)
    def savefig(self, fname, *args, **options):
        result = save(self, fname, *args, **options)
        if isinstance(fname, (str, os.PathLike)):
            _files[os.path.realpath(fname)] = weak_reference(self)
        return result

    pyplot.show = show
    pyplot.pause = pause
    Figure.savefig = savefig


def save_open(pyplot, discard=False):
    """Make artifacts of the open figures unless they are to be discarded, and close them. Never
    raises but for an interrupt: a figure that fails is reported."""
    try:
        for number in () if discard else pyplot.get_fignums():
            figure = pyplot.figure(number)
            if not any(figure is each() for each in _shown):
                _save(figure, number)
        pyplot.close("all")
    except Exception as failure:
        _report("the open figures", failure)
    _shown.clear()
    _files.clear()


def _save(figure, number):
    try:
        content = drawn(figure, "png")
        send(next_name(), content, "image/png")
    except Exception as failure:
        _report("figure %s" % number, failure)


def _report(what, failure):
    print_error("matplotlib: %s could not be saved: %s: %s\n"
                % (what, type(failure).__name__, failure))


def drawn(figure, kind):
    file = io.BytesIO()
    figure.savefig(file, format=kind)
    return file.getvalue()


def figure_of(value):
    """The figure that a value is, or is a part of; else None."""
    if "matplotlib.figure" not in sys.modules:
        return None
    Figure = sys.modules["matplotlib.figure"].Figure
    if value is sys.modules.get("matplotlib.pyplot"):
        return value.gcf()
    if isinstance(value, Figure):
        return value
    if hasattr(type(value), "figure") or "figure" in getattr(value, "__dict__", ()):
        figure = value.figure
        figure = getattr(figure, "figure", figure)  # of a figure within a figure
        return figure if isinstance(figure, Figure) else None
    return None


def next_name():
    """The name of the run's next figure."""
    names = of_this_run().names
    number = 1
    while "figure-%d.png" % number in names:
        number += 1
    return "figure-%d.png" % number


def has_shown(figure):
    """The figure has become an artifact, so the end of the run makes no other of it."""
    _shown.append(weak_reference(figure))


def file_is_saved(path):
    """A file has become an artifact; perhaps it shows a figure."""
    reference = _files.get(os.path.realpath(path))
    if reference is not None:
        _shown.append(reference)
