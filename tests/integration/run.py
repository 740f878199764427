#!/usr/bin/env python3
"""Runs the integration tests: all test_*.py beside this file, or those named.

    run.py [--list] [PATTERN...]      e.g. run.py clients test_hostile.Floods

The last line is "N passed, N failed". A test that is skipped, a file that can't be loaded and a run in which
nothing ran count as failed. The program under test is $BULKHEAD_BINARY or build/bulkhead."""

import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Result(unittest.TextTestResult):
    """Counts what passed and tells how long each test took."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.passed = 0
        self._started = 0.0

    def startTest(self, test):
        self._started = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def stopTest(self, test):
        super().stopTest(test)
        self.stream.writeln(f"    {time.monotonic() - self._started:.1f} s")

    def failed(self):
        # addSubTest reports each failing subtest; the test around it counts once for each.
        return (len(self.failures) + len(self.errors) + len(self.skipped) +
                len(self.expectedFailures) + len(self.unexpectedSuccesses))


def every_test(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from every_test(item)
        else:
            yield item


def main(arguments):
    listing = "--list" in arguments
    patterns = [argument for argument in arguments if argument != "--list"]
    sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
    tests = list(every_test(unittest.TestLoader().discover(HERE, pattern="test_*.py")))
    chosen = [test for test in tests
              if not patterns or any(pattern in test.id() for pattern in patterns)]
    if listing:
        print("\n".join(test.id() for test in chosen))
        return 0
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(unittest.TestSuite(chosen))
    for test, reason in result.skipped:
        print(f"skipped, which counts as failed: {test}: {reason}", file=sys.stderr)
    failed = result.failed()
    if result.passed + failed == 0:
        print("nothing ran", file=sys.stderr)
        failed = 1
    sys.stderr.flush()
    print(f"{result.passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
