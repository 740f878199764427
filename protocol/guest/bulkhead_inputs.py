"""Files that come with a run, written below the workspace before its code starts. In a session
earlier runs may have left anything there: no link is followed, and nothing else than a regular
file is written to."""
import errno
import os
import stat
from binascii import a2b_base64

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = (os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def write(files, workspace):
    """Write all of them, or raise an OSError that names the one that can't be."""
    for file in files:
        path = file["path"]
        try:
            _write(path, file["b64"], workspace)
        except (OSError, ValueError) as failure:
            number = getattr(failure, "errno", None) or errno.EINVAL
            reason = getattr(failure, "strerror", None) or str(failure)
            raise OSError(number, "an input file of the run can't be written: %s" % reason,
                          path) from None


def _write(path, encoded, workspace):
    *parents, name = path.split("/")
    if not all(parents + [name]) or {".", ".."}.intersection(parents + [name]):
        raise OSError(errno.EINVAL, "its path has to be relative and stay below %s, without empty "
                      "parts, '.' or '..'" % workspace)
    content = a2b_base64(encoded)
    folder = os.open(workspace, _FOLDER)
    try:
        for parent in parents:
            folder = _enter(folder, parent)
        descriptor = os.open(name, _FILE, 0o666, dir_fd=folder)
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            failure.strerror = "there is a symbolic link in the way"
        raise
    finally:
        os.close(folder)
    with open(descriptor, "wb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EEXIST, "there is something in its place that is no regular file")
        file.truncate()
        file.write(content)


def _enter(folder, name):
    """A folder in a folder, made if there is none; closes the outer one."""
    try:
        try:
            os.mkdir(name, dir_fd=folder)
        except FileExistsError:
            pass
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as failure:
        # A link to a folder isn't told from a file by all kernels.
        if failure.errno == errno.ENOTDIR and stat.S_ISLNK(
                os.lstat(name, dir_fd=folder).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise
    os.close(folder)
    return inner
