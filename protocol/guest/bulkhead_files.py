"""Reading what lies in /projects. Every run of an account may write there, so a name can be
anything by now: a link, a pipe, a folder, a file without end. Nothing here follows it or waits.
"""
import os
import stat

FOLDER = "/projects"


class Unreadable(Exception):
    """There is something by that name, but not a file that can be read; the text says why."""


def open_folder(path):
    """A descriptor of the folder itself; OSError if it is none, or a link to one."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def read_regular(path, most_bytes, folder=None):
    """The content of a regular file and its status (`os.stat_result`). Raises FileNotFoundError, or
    Unreadable for anything else than a regular file of at most `most_bytes`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
                             | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as failure:
        import errno

        if failure.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
            raise Unreadable("it isn't a regular file") from None
        raise Unreadable(failure.strerror) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("it isn't a regular file")
        if status.st_size > most_bytes:
            raise Unreadable("it takes %d bytes, more than %d" % (status.st_size, most_bytes))
        return _read(descriptor, most_bytes), status
    except OSError as failure:
        raise Unreadable(failure.strerror) from None
    finally:
        os.close(descriptor)


def _read(descriptor, most_bytes):
    pieces = []
    left = most_bytes + 1  # one more shows that the file has grown meanwhile
    while left > 0:
        piece = os.read(descriptor, left)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
    raise Unreadable("it takes more than %d bytes" % most_bytes)
