"""Where the things lie that are deployed, and what these tests borrow from the integration tests."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
DEPLOY = os.path.join(ROOT, "deploy")
sys.path[:0] = [os.path.join(HERE, "..", "integration"), os.path.join(HERE, "..", "support")]


def text_of(*path):
    """The text of a file of this project."""
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def variable_of_setup(name):
    """What deploy/setup.sh sets a variable to."""
    return re.search(rf"^{name}=(\S+)$", text_of("deploy", "setup.sh"), re.M).group(1)
