"""Calls that wait to be awaited, and what is said of those that never were."""
import sys

_call_numbers = iter(range(sys.maxsize))
_unawaited = {}  # number of a call that nobody has awaited yet: how to write it
_WARNINGS = 5


class UnawaitedCall:
    """A call made where an event loop runs: goes out when awaited, like any coroutine. Unlike a
    coroutine it says what to write when it was not."""

    def __init__(self, start, name, expression):
        self.__name__ = self.__qualname__ = name
        self._start = start
        self._expression = expression
        self._coroutine = None
        self._number = next(_call_numbers)
        _unawaited[self._number] = expression

    def _begun(self):
        if self._coroutine is None:
            _unawaited.pop(self._number, None)
            self._coroutine = self._start()
            self._coroutine.__qualname__ = self._coroutine.__name__ = self.__name__
        return self._coroutine

    def __await__(self):
        return self._begun().__await__()

    # What makes it a coroutine for asyncio.

    def send(self, value):
        return self._begun().send(value)

    def throw(self, *failure):
        return self._begun().throw(*failure)

    def close(self):
        self._begun().close()

    def __repr__(self):
        if self._coroutine is not None:
            return "<call of %s>" % self.__name__
        return "<call of %s, not awaited: write await %s>" % (self.__name__, self._expression)


def warn_of_unawaited():
    """What to say of the calls that were never awaited, and so never made; forgets them."""
    counts = {}
    while _unawaited:
        expression = _unawaited.popitem()[1]
        counts[expression] = counts.get(expression, 0) + 1
    lines = []
    for expression in sorted(counts)[:_WARNINGS]:
        times = counts[expression]
        lines.append("RuntimeWarning: %s was never awaited, so the call wasn't made%s: write await %s"
                     % (expression, "" if times == 1 else " (%d times)" % times, expression))
    if len(counts) > _WARNINGS:
        lines.append("RuntimeWarning: %d more kinds of calls were never awaited"
                     % (len(counts) - _WARNINGS))
    return "".join(line + "\n" for line in lines)
