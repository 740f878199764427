"""`display`: objects as the richest thing that they say they can be, as notebooks show them."""
from binascii import Error as BadBase64, a2b_base64

from bulkhead_artifacts import send
from bulkhead_images import drawn_figure, send_image
from bulkhead_json import to_bytes

# In the order of preference; the file names' stems and extensions.
_KINDS = (("image/png", "_repr_png_", "image.png"), ("image/jpeg", "_repr_jpeg_", "image.jpg"),
          ("image/svg+xml", "_repr_svg_", "image.svg"), ("text/html", "_repr_html_", "output.html"),
          ("text/markdown", "_repr_markdown_", "output.md"),
          ("application/json", "_repr_json_", "output.json"))


def display(*objects):
    names = [_display(each) for each in objects]
    return names[0] if len(names) == 1 else names or None


def _display(value):
    if isinstance(value, str) or isinstance(value, type):
        print(value)
        return None
    if isinstance(value, (dict, list)):
        text = _json_of(value)
        if text is not None:
            return send("output.json", text, "application/json")
    else:
        found = drawn_figure(value)
        if found is not None:
            return send_image(found[1], found[0])
        for mime_type, name, data in _offers(value):
            if mime_type == "text/html":
                print(repr(value))  # HTML is for people; whoever reads the output wants to see it
            return send(name, data, mime_type)
    print(repr(value))
    return None


def _offers(value):
    """(MIME type, name, bytes) of all that the object offers, the best first. Methods are looked up
    in its class: an object may make up any attribute."""
    kind = type(value)
    bundle = {}
    if hasattr(kind, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_(include=None, exclude=None) or {}
        if isinstance(bundle, tuple):  # with metadata
            bundle = bundle[0]
    for mime_type, method, name in _KINDS:
        data = bundle.get(mime_type)
        if data is None and hasattr(kind, method):
            data = getattr(value, method)()
            if isinstance(data, tuple):
                data = data[0]
        data = _bytes_of(data, mime_type)
        if data is not None:
            yield mime_type, name, data


def _bytes_of(data, mime_type):
    if mime_type == "application/json":
        return None if data is None else _json_of(data)
    if isinstance(data, str):
        if mime_type in ("image/png", "image/jpeg"):
            try:
                return a2b_base64(data)
            except BadBase64:
                return None
        return to_bytes(data)
    return bytes(data) if isinstance(data, (bytes, bytearray)) else None


def _json_of(value):
    """A value as JSON to be read; None if it is not JSON-able."""
    import json

    try:
        return to_bytes(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2))
    except (TypeError, ValueError, RecursionError):
        return None
