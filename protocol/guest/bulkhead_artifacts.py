"""Files for the user: what code hands over goes to the host as frames, bytes and not paths."""
import errno
import os
import stat
import sys
import _thread

import bulkhead_runtime
from bulkhead_channel import Parcel
from bulkhead_json import encode_text, to_bytes
from bulkhead_runtime import MCPError

NAME_BYTES = 255
MIME_BYTES = 127
# What `mimetypes` doesn't know in all versions.
_TYPES = {".webp": "image/webp", ".md": "text/markdown", ".yaml": "application/yaml",
          ".yml": "application/yaml", ".jsonl": "application/jsonl",
          ".parquet": "application/vnd.apache.parquet", ".gz": "application/gzip",
          ".bz2": "application/x-bzip2", ".xz": "application/x-xz"}
_MIME_MARKS = frozenset("!#$&-^_.+")  # RFC 6838, section 4.2


class _Artifacts:
    """Those of one run."""

    def __init__(self, run):
        self.run = run
        self.names = set()
        self.size = 0


_latest = _Artifacts(0)
_lock = _thread.allocate_lock()


def of_this_run():
    global _latest
    if _latest.run != bulkhead_runtime._channel.runs:
        _latest = _Artifacts(bulkhead_runtime._channel.runs)
    return _latest


def save_file(path_or_name, data, mime_type):
    if isinstance(path_or_name, (str, bytes, os.PathLike)):
        path = os.fsdecode(path_or_name)
    else:
        raise TypeError("save_file takes a path, or a name and its content, not %s"
                        % type(path_or_name).__name__)
    content = read(path) if data is None else _content_of(data)
    name = os.path.basename(path)
    return send(name, content, mime_type or type_of(name, content, isinstance(data, str)))


def _content_of(data):
    if hasattr(type(data), "getvalue"):  # BytesIO, StringIO
        data = data.getvalue()
    if isinstance(data, str):
        return to_bytes(data)
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise TypeError("a file's content is bytes or str, not %s; encode it first, such as by "
                        "json.dumps" % type(data).__name__) from None


def read(path):
    """The content of a regular file that isn't too large for an artifact."""
    most = bulkhead_runtime._channel.artifact_bytes
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, "there is no such file; give its path, or a name and its content",
            path) from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(
                errno.EISDIR, "it is a folder; save its files, or make a zip file of it", path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "only regular files can be saved", path)
        if status.st_size > most:
            raise _too_large(path, status.st_size)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)  # it may grow meanwhile
    finally:
        os.close(descriptor)
    figures = sys.modules.get("bulkhead_figures")
    if figures is not None:
        figures.file_is_saved(path)
    return content


def type_of(name, content, is_text=False):
    """The MIME type by the name's extension; else by whether it is text."""
    extension = os.path.splitext(name)[1].lower()
    if extension in _TYPES:
        return _TYPES[extension]
    import mimetypes

    guessed, encoding = mimetypes.guess_type(name)
    if guessed is not None and encoding is None:
        return guessed
    if not is_text:
        try:
            is_text = "\0" not in content.decode()
        except UnicodeDecodeError:
            pass
    return "text/plain" if is_text else "application/octet-stream"


def send(name, content, mime_type):
    """Send an artifact; its name, which may have got a number. Blocks until it is written."""
    channel = bulkhead_runtime._channel
    if channel.disowned:
        raise MCPError("a child process can't save files for the user; hand the data to the "
                       "process that started it, and save it there", "closed")
    _check_name(name)
    _check_type(mime_type)
    if len(content) > channel.artifact_bytes:
        raise _too_large(name, len(content))
    with _lock:
        run = of_this_run()
        if len(run.names) >= channel.artifacts:
            raise OSError(errno.EDQUOT, "a run can save %d files, and has done so; put several "
                          "into one, such as a zip file" % channel.artifacts, name)
        if run.size + len(content) > channel.artifacts_bytes:
            raise OSError(
                errno.EDQUOT, "it takes %d bytes, and of the %d that all files of a run may take "
                "%d are left; save less, or compress it"
                % (len(content), channel.artifacts_bytes, channel.artifacts_bytes - run.size), name)
        name = _unique(name, run.names)
        run.names.add(name)
        run.size += len(content)
    from binascii import b2a_base64

    parcel = Parcel(b'{"type":"artifact","name":%b,"mimeType":%b,"b64":"%b"}\n' % (
        encode_text(name).encode(), encode_text(mime_type).encode(),
        b2a_base64(content, newline=False)))
    channel.submit(parcel)
    if not parcel.wait()["success"]:
        raise MCPError("save %s: the run that this thread belongs to has ended, so it can save no "
                       "more files" % name, "closed")
    return name


def _too_large(name, size):
    return OSError(errno.EFBIG, "it takes %d bytes, and a saved file may take %d; save less, "
                   "compress it, or split it" % (size, bulkhead_runtime._channel.artifact_bytes),
                   name)


def _check_name(name):
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("the name %r isn't valid Unicode" % name[:100]) from None
    if not name or name in (".", ".."):
        raise ValueError("%r is no name of a file; give one such as 'plot.png'" % name)
    if size > NAME_BYTES:
        raise ValueError("the name of a file may take %d bytes, and %r… takes %d"
                         % (NAME_BYTES, name[:40], size))
    if any(ord(each) < 32 or 127 <= ord(each) < 160 for each in name):
        raise ValueError("the name %r has control characters" % name)


def _check_type(mime_type):
    text = mime_type if isinstance(mime_type, str) else ""
    parts = text.removesuffix("; charset=utf-8").split("/")
    if len(parts) != 2 or len(text) > MIME_BYTES or not all(map(_is_part_of_type, parts)):
        raise ValueError("%r is no MIME type; give one such as 'text/csv', of at most %d characters "
                         "and with no parameter but '; charset=utf-8'" % (mime_type, MIME_BYTES))


def _is_part_of_type(text):
    return (text[:1].isalnum() and text.isascii()
            and all(each.isalnum() or each in _MIME_MARKS for each in text))


def _unique(name, taken):
    stem, extension = os.path.splitext(name)
    if stem.endswith(".tar"):
        stem, extension = stem[:-4], ".tar" + extension
    number = 2
    candidate = name
    while candidate in taken:
        tail = "-%d%s" % (number, extension)
        room = max(NAME_BYTES - len(tail.encode()), 0)
        candidate = stem.encode()[:room].decode("utf-8", "ignore") + tail
        number += 1
    return candidate
