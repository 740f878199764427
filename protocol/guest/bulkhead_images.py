"""Images for the user: whatever is one, as the bytes of an image file."""
import io
import os
import sys

from bulkhead_artifacts import read, send

_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif"),
               (b"BM", "bmp"), (b"II*\0", "tiff"), (b"MM\0*", "tiff"))
TYPES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
         "bmp": "image/bmp", "tiff": "image/tiff", "tif": "image/tiff", "webp": "image/webp",
         "svg": "image/svg+xml", "pdf": "application/pdf"}
# PNG's color type for so many channels (PNG specification, 11.2.2).
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
# Filter types (9.2): bytes as they are, or their differences to the row above, modulo 256, which is
# quick with numpy and makes most images smaller.
_NO_FILTER, _UP = b"\0", b"\2"


def save_image(image, name):
    if name is not None and not isinstance(name, str):
        raise TypeError("the name of an image is a str, not %s" % type(name).__name__)
    wanted = _extension(name) if name else ""
    if isinstance(image, (str, os.PathLike)):
        content = read(os.fspath(image))
        return send_image(name or os.path.basename(os.fspath(image)), content)
    if isinstance(image, (bytes, bytearray)):
        return send_image(name or "image", bytes(image))
    found = rendered(image, wanted)
    if found is None:
        raise TypeError("save_image: %s is no image; give a matplotlib figure, a PIL image, an "
                        "array, or an image file's bytes or path" % type(image).__name__)
    return send_image(name or found[1], found[0])


def send_image(name, content):
    """Send an image file's bytes; its kind is what they show, and becomes the name's extension."""
    kind = _kind_of(content)
    if kind is None:
        raise ValueError("save_image: these %d bytes are no image of a kind that is known here "
                         "(PNG, JPEG, GIF, WebP, SVG, BMP, TIFF); save_file takes any"
                         % len(content))
    if TYPES.get(_extension(name)) != TYPES[kind]:
        name = "%s.%s" % (name, kind)
    return send(os.path.basename(name), content, TYPES[kind])


def rendered(image, wanted=""):
    """(bytes of an image file, name) of an object, or None if it is no image. `wanted`: the file
    name's extension that the user gave."""
    found = drawn_figure(image, wanted)
    if found is not None:
        return found
    kind = type(image)
    if hasattr(kind, "save") and hasattr(image, "mode"):
        return _saved_by_pil(image, wanted), "image"
    if hasattr(kind, "__array__") or isinstance(image, memoryview):
        return png_of(image), "image"
    return None


def drawn_figure(value, wanted=""):
    """As `rendered`, of a matplotlib figure or a part of one only."""
    figures = sys.modules.get("bulkhead_figures")  # there once matplotlib is
    figure = figures.figure_of(value) if figures is not None else None
    if figure is None:
        return None
    content = figures.drawn(figure, wanted if wanted in TYPES else "png")
    figures.has_shown(figure)
    return content, figures.next_name()


def _saved_by_pil(image, wanted):
    kind = {"jpg": "JPEG", "jpeg": "JPEG", "gif": "GIF", "webp": "WEBP", "bmp": "BMP",
            "tif": "TIFF", "tiff": "TIFF"}.get(wanted, "PNG")
    file = io.BytesIO()
    try:
        image.save(file, format=kind)
    except OSError:  # a mode that the format doesn't have
        file = io.BytesIO()
        image.convert("RGB").save(file, format=kind)
    return file.getvalue()


def _extension(name):
    return os.path.splitext(name)[1][1:].lower()


def _kind_of(content):
    for signature, kind in _SIGNATURES:
        if content.startswith(signature):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    if content.startswith(b"%PDF-"):
        return "pdf"
    if b"<svg" in content[:4096]:
        return "svg"
    return None


# PNG of arrays

def png_of(array):
    """An array of rows of pixels as a PNG file; ValueError or TypeError if it is none."""
    if hasattr(type(array), "__array__"):
        array = _as_bytes(array.__array__())
    pixels = memoryview(array)
    shape = pixels.shape
    if pixels.format != "B" or len(shape) not in (2, 3):
        raise ValueError("save_image: an image is an array of bytes with 2 or 3 dimensions, height, "
                         "width and channels, not one of format %r and shape %s"
                         % (pixels.format, shape))
    channels = shape[2] if len(shape) == 3 else 1
    if channels not in _COLOR_TYPES or 0 in shape:
        raise ValueError("save_image: an image's array has 1 to 4 channels in its last dimension "
                         "and at least one pixel; this one's shape is %s" % (shape,))
    if array is pixels or not hasattr(array, "reshape"):
        return png(shape[1], shape[0], channels, pixels.tobytes(), _NO_FILTER)
    rows = array.reshape(shape[0], shape[1] * channels)
    differences = rows.copy()
    differences[1:] -= rows[:-1]
    return png(shape[1], shape[0], channels, differences.tobytes(), _UP)


def _as_bytes(array):
    """An array of any kind of numbers as one of uint8."""
    kind = array.dtype.kind
    if kind == "b":
        return array.astype("uint8") * 255
    if kind not in "uif":
        raise TypeError("save_image: an image's array has numbers, not %s" % array.dtype)
    if array.dtype.itemsize == 1 and kind == "u" or not array.size:
        return array.astype("uint8")
    highest = 1 if kind == "f" else 255
    low, top = array.min(), array.max()
    if not (low >= 0 and top <= highest):  # NaN too
        raise ValueError("save_image: an image's %s are 0 to %d, and these are %s to %s; scale them"
                         % ("floats" if kind == "f" else "integers", highest, low, top))
    return (array * 255 + 0.5 if kind == "f" else array).astype("uint8")


def png(width, height, channels, rows, filter_type):
    """A PNG file of 8 bits a channel."""
    import zlib

    def chunk(kind, data):
        return b"%b%b%b%b" % (len(data).to_bytes(4, "big"), kind, data,
                              zlib.crc32(kind + data).to_bytes(4, "big"))

    stride = width * channels
    packer = zlib.compressobj(6)
    packed = []
    for start in range(0, height * stride, stride):
        packed.append(packer.compress(filter_type + rows[start:start + stride]))
    packed.append(packer.flush())
    header = b"%b%b\x08%c\0\0\0" % (width.to_bytes(4, "big"), height.to_bytes(4, "big"),
                                    _COLOR_TYPES[channels])
    return (_SIGNATURES[0][0] + chunk(b"IHDR", header) + chunk(b"IDAT", b"".join(packed))
            + chunk(b"IEND", b""))
