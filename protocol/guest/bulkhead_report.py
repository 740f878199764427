"""How a run ended, as the host reads it: exit code, result, error. Nothing here may raise, whatever
the objects of user code do when looked at, and all of it fits a control frame of 64 KiB."""
import sys

from bulkhead_json import check_shape, decode, encode, encode_text, to_bytes

REPR_BYTES = 4 * 1024
VALUE_BYTES = 16 * 1024
MESSAGE_BYTES = 4 * 1024
TRACEBACK_BYTES = 16 * 1024
_NAME_BYTES = 512
# A value whose repr is longer than this is not tried as JSON.
_REPR_TRIED = 32 * 1024
_REPR_DEPTH = 40

_GUEST_FOLDER = __file__.rpartition("/")[0] + "/"


class Outcome:
    """Collects what becomes of one run."""

    def __init__(self, run_id, sources):
        self.exit_code = 0
        self._run_id = run_id
        self._sources = sources
        self._result = None
        self._error = None

    def succeeded(self, value):
        if value is not None:
            self._result = describe_value(value)

    def ended_by(self, failure):
        """Record an exception that left the code, and show it as Python would."""
        self._result = None
        kind = type(failure)  # not isinstance: that asks the object, which may be odd
        if issubclass(kind, SystemExit):
            self.exit_code = _exit_code(failure.code)
            return
        self.exit_code = 130 if issubclass(kind, KeyboardInterrupt) else 1
        _add_hint(failure, kind)
        kind = type_name(kind)
        message = _safely(str, failure)
        text = self._traceback_of(failure) or "%s: %s\n" % (kind, message)
        _show(failure, text)
        self._error = {"type": clip(kind, _NAME_BYTES), "message": clip(message, MESSAGE_BYTES),
                       "traceback": clip(text, TRACEBACK_BYTES)}

    def _traceback_of(self, failure):
        try:
            keep_user_frames(failure, self._sources)
            import traceback

            return "".join(traceback.format_exception(type(failure), failure,
                                                      failure.__traceback__))
        except Exception:
            return ""

    def frame(self):
        frame = {"type": "done", "id": self._run_id, "exitCode": self.exit_code}
        if self._result is not None:
            frame["result"] = self._result
        if self._error is not None:
            frame["error"] = self._error
        return frame


def _add_hint(failure, kind):
    """To the message of an exception that comes of a server which the run didn't ask for."""
    if kind is NameError:
        # Python 3.9 has no NameError.name.
        missing = str(failure).partition("'")[2].partition("'")[0]
        prefix = "mcp_"
    elif kind is ModuleNotFoundError:
        missing = failure.name or ""
        prefix = "mcp.servers."
    else:
        return
    if missing.startswith(prefix) and len(failure.args) == 1:
        runtime = sys.modules.get("mcp.runtime")
        if runtime is not None:
            hint = runtime.missing_server_hint(missing[len(prefix):])
            text = "%s; %s" % (failure.args[0], hint)
            failure.args = (text,)
            if kind is ModuleNotFoundError:
                failure.msg = text


def _exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF  # What a process's parent sees of it.
    print_error(_safely(str, code) + "\n")
    return 1


def print_error(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        pass  # User code has closed or replaced it; the frame `done` tells all the same.


def _show(failure, text):
    hook = sys.excepthook
    if hook is not sys.__excepthook__:
        try:
            hook(type(failure), failure, failure.__traceback__)
            return
        except Exception as broken:
            print_error("Error in sys.excepthook: %s\n\nOriginal exception was:\n"
                         % _safely(repr, broken))
    print_error(text)


# Tracebacks

def keep_user_frames(failure, sources):
    """Take the guest's own frames, and those that lead to the run's first line, out of the
    tracebacks of an exception and of all that it is chained to or groups."""
    seen = set()
    todo = [failure]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _filtered(one.__traceback__, sources)
        todo += [one.__cause__, one.__context__]
        grouped = getattr(one, "exceptions", None)
        if isinstance(grouped, tuple):
            todo += [member for member in grouped if isinstance(member, BaseException)]


def _filtered(trace, sources):
    entries = []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_GUEST_FOLDER):
            entries.append((trace, name in sources))
        trace = trace.tb_next
    first = next((index for index, (_, in_run) in enumerate(entries) if in_run), 0)
    following = None
    for entry, _ in reversed(entries[first:]):
        entry.tb_next = following
        following = entry
    return following


def type_name(kind):
    """As a traceback names it: with the module, unless built in or the run's own."""
    module = kind.__module__
    if module in ("builtins", "__main__") or not isinstance(module, str):
        return kind.__qualname__
    return "%s.%s" % (module, kind.__qualname__)


def _safely(function, value):
    try:
        return function(value)
    except Exception as broken:
        return "<%s object: %s() raised %s>" % (
            type(value).__name__, function.__name__, type(broken).__name__)


# Values

def describe_value(value):
    """{"repr", "value"} of a result; without "value" if it is not JSON-able, or too large."""
    text = bounded_repr(value, _REPR_TRIED)
    described = {"repr": clip(text, REPR_BYTES)}
    if len(text) < _REPR_TRIED:
        try:
            check_shape(value)
            as_json = encode(value)
            if len(to_bytes(as_json)) <= VALUE_BYTES:
                # A copy: user code's threads may go on to change the value itself.
                described["value"] = decode(as_json)
        except Exception:
            pass
    return described


def bounded_repr(value, room):
    """repr(value), or its beginning and "…" where it is longer than `room` characters. Built-in
    containers are not looked at any further than that: a list of 100 million costs nothing."""
    pieces = []
    try:
        _append_repr(value, pieces, [room], [])
    except _Full:
        pieces.append("…")
    except Exception as broken:
        return "<%s object: repr() raised %s>" % (type(value).__name__, type(broken).__name__)
    return "".join(pieces)


class _Full(Exception):
    pass


def _put(text, pieces, room):
    if len(text) > room[0]:
        pieces.append(text[:room[0]])
        raise _Full
    room[0] -= len(text)
    pieces.append(text)


_BRACKETS = {list: "[]", tuple: "()", set: "{}", frozenset: ("frozenset({", "})"), dict: "{}"}


def _append_repr(value, pieces, room, above):
    kind = type(value)
    if kind in (str, bytes, bytearray):
        if len(value) > room[0]:
            _put(repr(value[:room[0]])[:-1], pieces, room)
            raise _Full
    elif kind in _BRACKETS and value and len(above) < _REPR_DEPTH:
        _append_container(value, kind, pieces, room, above)
        return
    _put(_safely(repr, value), pieces, room)


def _append_container(value, kind, pieces, room, above):
    start, end = _BRACKETS[kind]
    if any(value is outer for outer in above):
        _put("[...]" if kind is list else "(...)" if kind is tuple else "{...}", pieces, room)
        return
    above.append(value)
    _put(start, pieces, room)
    for index, item in enumerate(value):
        if index:
            _put(", ", pieces, room)
        _append_repr(item, pieces, room, above)
        if kind is dict:
            _put(": ", pieces, room)
            _append_repr(value[item], pieces, room, above)
    if kind is tuple and len(value) == 1:
        _put(",", pieces, room)
    _put(end, pieces, room)
    above.pop()


def clip(text, limit):
    """`text` if it takes at most `limit` bytes as JSON, else its beginning and end."""
    if len(text) <= limit and len(to_bytes(encode_text(text))) <= limit:
        return text
    kept = limit
    while True:
        half = kept // 2
        short = "%s\n… %d characters left out …\n%s" % (
            text[:half], len(text) - 2 * half, text[len(text) - half:])
        if len(to_bytes(encode_text(short))) <= limit:
            return short
        kept = kept * 3 // 4
