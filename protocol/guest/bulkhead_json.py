"""JSON by the interpreter's own C accelerator, without the `json` package.

The package pulls in `re`, `enum` and `collections`: 8 ms and 1 MB, or 50 ms where the image has no
.pyc files, in every sandbox that waits for work. The accelerator alone costs 0.3 ms. An
interpreter whose accelerator looks different falls back to the package.
"""


def _refuse(value):
    raise TypeError("%s is not JSON-able" % type(value).__name__)


def _from_package():
    import json

    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"),
                               default=_refuse)
    return json.loads, encoder.encode, json.encoder.encode_basestring


def _from_accelerator():
    import _json

    class Context:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float = parse_constant = float
        parse_int = int
        memo = {}

    scan = _json.make_scanner(Context())

    def decode(text):
        try:
            value, end = scan(text, 0)
        except (StopIteration, SystemError):  # the second up to 3.11, unless json is loaded
            raise ValueError("not JSON: %.200r" % text) from None
        if end != len(text):
            raise ValueError("more than one JSON value: %.200r" % text)
        return value

    def encode(value):
        # The first argument collects the containers being visited, to find cycles.
        scribe = _json.make_encoder({}, _refuse, _json.encode_basestring, None, ":", ",",
                                    False, False, False)
        return "".join(scribe(value, 0))

    if decode(encode({"a": [1, "\u00e9", None]})) != {"a": [1, "\u00e9", None]}:
        raise ImportError("the JSON accelerator behaves differently")
    return decode, encode, _json.encode_basestring


try:
    decode, encode, encode_text = _from_accelerator()
except (ImportError, AttributeError, TypeError, ValueError):
    decode, encode, encode_text = _from_package()


def to_bytes(text):
    """UTF-8, never raising: surrogate pairs are joined, lone surrogates become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


# The host scans every frame before it builds anything: at most 64 levels and 100,000 nodes, no
# duplicate keys. What user code hands over stays below that, leaving room for the frame around it.
MAX_DEPTH = 56
MAX_NODES = 90_000


def check_shape(value):
    """Raise ValueError if the host would refuse `value` for its shape, whatever its size."""
    nodes = 0
    level = [value]
    for _ in range(MAX_DEPTH):
        below = []
        for item in level:
            if isinstance(item, dict):
                _check_keys(item)
                below.extend(item.values())
            elif isinstance(item, (list, tuple)):
                below.extend(item)
            if nodes + len(below) > MAX_NODES:
                raise ValueError("it has more than %d values" % MAX_NODES)
        nodes += len(below)
        if not below:
            return
        level = below
    raise ValueError("it is nested deeper than %d levels, or contains itself" % MAX_DEPTH)


def _check_keys(mapping):
    # JSON turns 1, True and None into strings, which may then be there twice.
    if all(type(key) is str for key in mapping):
        return
    names = {encode(key) if not isinstance(key, str) else encode_text(key) for key in mapping}
    texts = {name if name[:1] == '"' else '"%s"' % name for name in names}
    if len(texts) != len(mapping):
        raise ValueError("two of its keys are the same as JSON")
