"""What the file of a memory holds: {"key", "created_at", "updated_at", "metadata", "value"}, the
times in seconds since 1970, as the older Python bridge wrote it, too. Any other JSON is taken for
the value itself, so that files can be made by hand.
"""
from bulkhead_json import decode, encode
from bulkhead_names import key_of, names_of
from bulkhead_runtime import MCPError, MemoryQuotaError

VALUE_BYTES = 8 * 1024 * 1024
METADATA_BYTES = 64 * 1024
FILE_BYTES = VALUE_BYTES + 2 * METADATA_BYTES  # more than what is around a value
# A list of 8 MiB of `{},` takes 200 MB once decoded. Who doesn't want the value decodes only files
# of this size, and the beginning of those that Bulkhead wrote.
_DECODED_BYTES = 1024 * 1024
_BEFORE_VALUE = b',\n "value": '  # in a string of JSON no line ends
_FIELDS = ("key", "value", "created_at", "updated_at")
_DEEPEST = 500


class Memory:
    """One memory, as its file has it; ValueError or RecursionError if that isn't JSON. The value is
    None unless it is asked for."""

    __slots__ = ("key", "value", "metadata", "created_at", "updated_at", "size", "name")

    def __init__(self, name, content, status, with_value):
        self.name = name
        self.size = len(content)
        self.key = self.value = None
        self.metadata = {}
        self.created_at = self.updated_at = status.st_mtime
        head, found, _ = content.partition(_BEFORE_VALUE)
        if not with_value and found:
            content = head + b', "value": null}'
        if not with_value and len(content) > _DECODED_BYTES:
            return
        self._take(decode(content.decode("utf-8-sig").strip(" \t\r\n")))

    def _take(self, found):
        if (isinstance(found, dict) and all(field in found for field in _FIELDS)
                and isinstance(found["key"], str)):
            self.key = found["key"]
            self.value = found["value"]
            self.metadata = found.get("metadata") or {}
            self.created_at = found["created_at"]
            self.updated_at = found["updated_at"]
        else:
            self.value = found

    def owner(self):
        """The key that the file belongs to, None if its name stands for none."""
        try:
            if self.key is not None and self.name in names_of(self.key):
                return self.key
        except ValueError:
            pass  # no key that Bulkhead would take
        return key_of(self.name)

    def described(self, key):
        return {"key": key, "metadata": self.metadata, "created_at": self.created_at,
                "updated_at": self.updated_at, "size": self.size}


def envelope(key, value, metadata, created_at, updated_at):
    """The content of a file."""
    return b'{"key": %b,\n "created_at": %b,\n "updated_at": %b,\n "metadata": %b%b%b}\n' % (
        _as_json(key, "key", FILE_BYTES), _as_json(created_at, "created_at", METADATA_BYTES),
        _as_json(updated_at, "updated_at", METADATA_BYTES),
        _as_json(metadata, "metadata", METADATA_BYTES), _BEFORE_VALUE,
        _as_json(value, "value", VALUE_BYTES))


def _as_json(value, what, most_bytes):
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError) as failure:
        raise MCPError("%s; pass None, bool, int, finite float, str, list, tuple and dict only"
                       % _culprit(value, what, failure), "invalid_argument") from None
    # A lone surrogate is in a string, where JSON's escape for it is the same as Python's.
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > most_bytes:
        raise MemoryQuotaError("the %s takes %d bytes as JSON, and %d are allowed"
                               % (what, len(data), most_bytes))
    return data


def _culprit(value, what, failure):
    """Which part of a value isn't JSON-able, and why."""
    todo = [(value, what, 0)]
    while todo:
        one, path, depth = todo.pop()
        if depth > _DEEPEST:
            return "%.200s… is nested too deeply, or contains itself" % path
        if isinstance(one, dict):
            for key in one:
                if not (key is None or isinstance(key, (str, int, float))):
                    return "%s has the key %.100r of type %s, which isn't JSON-able" % (
                        path, key, type(key).__name__)
            todo += [(item, "%s[%.100r]" % (path, key), depth + 1)
                     for key, item in reversed(one.items())]
        elif isinstance(one, (list, tuple)):
            todo += [(item, "%s[%d]" % (path, index), depth + 1)
                     for index, item in reversed(list(enumerate(one)))]
        elif isinstance(one, float) and (one != one or one in (float("inf"), -float("inf"))):
            return "%s is %r, which JSON doesn't have" % (path, one)
        elif not (one is None or isinstance(one, (str, int, float))):
            return "%s is of type %s, which isn't JSON-able" % (path, type(one).__name__)
    return "the %s can't be written as JSON: %s" % (what, failure)
