"""Writing to a folder in /projects that other runs, of other containers, write to at the same time.

Whoever changes a folder holds the lock of a file in it; a file is replaced whole or not at all.
Modes are left wide open (0666, 0777): the folder's default ACL narrows them to the account and the
sandbox, while a narrower mode would shut the account out, being the ACL's mask.
"""
import errno
import fcntl
import os
import stat
import time
import _thread
from io import FileIO

from bulkhead_runtime import MCPError

LOCK_SECONDS = 10.0
LEFT_OVER_SECONDS = 3600
_TEMPORARY = ".new-"


def failed(doing, failure):
    """The error of an operation on a file that the system refused."""
    reason = failure.strerror or str(failure)
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        reason += "; delete memories or files in /projects that aren't needed any more"
    elif failure.errno == errno.ELOOP:
        reason = "it is a link; remove it"
    elif failure.errno == errno.EFBIG:
        reason += "; a file in the sandbox can't become that large"
    return MCPError("%s: %s" % (doing, reason), "unavailable")


class Locked:
    """Context: this thread alone changes the folder, of all threads and processes; again inside
    itself it does nothing. At most LOCK_SECONDS of waiting, then MCPError."""

    _threads = _thread.RLock()
    _held = {}  # path of a lock file: how often this thread has taken it

    def __init__(self, folder, folder_path, name):
        self._folder = folder
        self._path = "%s/%s" % (folder_path, name)
        self._name = name
        self._file = None

    def __enter__(self):
        deadline = time.monotonic() + LOCK_SECONDS
        if not self._threads.acquire(True, LOCK_SECONDS):
            raise self._late("another thread")
        try:
            depth = self._held.get(self._path, 0)
            if depth == 0:
                self._file = self._locked_file(deadline)
            self._held[self._path] = depth + 1
        except BaseException:
            self._threads.release()
            raise
        return self

    def __exit__(self, *failure):
        try:
            self._held[self._path] -= 1
            if self._file is not None:
                # Not by closing alone: a forked child may have the descriptor, too.
                fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)
                self._file.close()
                self._file = None
        finally:
            self._threads.release()

    def _locked_file(self, deadline):
        pause = 0.0005
        while True:
            file = self._open()
            if self._try(file) and self._is_current(file):
                return file
            file.close()
            if time.monotonic() > deadline:
                raise self._late("another run")
            time.sleep(pause)
            pause = min(pause * 2, 0.01)

    def _open(self):
        try:
            # A file object, so that it is closed, and the lock gone, whatever interrupts.
            file = FileIO(self._name, "r+", opener=self._opener)
        except OSError as failure:
            raise failed("lock %s" % self._path, failure) from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise MCPError("lock %s: it isn't a regular file; remove it" % self._path,
                           "unavailable")
        return file

    def _opener(self, name, flags):
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
                       | os.O_CLOEXEC, 0o666, dir_fd=self._folder)

    def _try(self, file):
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        except OSError as failure:
            raise failed("lock %s" % self._path, failure) from None

    def _is_current(self, file):
        """The name may stand for another file by now, if somebody removed it meanwhile."""
        try:
            named = os.lstat(self._name, dir_fd=self._folder)
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(file.fileno()))

    def _late(self, who):
        return MCPError("lock %s: %s has held it for %d seconds; try again"
                        % (self._path, who, LOCK_SECONDS), "timeout")


def replace(folder, folder_path, name, content):
    """Give a file new content, at once for whoever reads it; on failure the old one stays. The
    content is on the disk before the name is, so that a crash of the host can't leave an empty
    file. The folder has to be locked."""
    temporary = _TEMPORARY + os.urandom(8).hex()
    try:
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                                 | os.O_CLOEXEC, 0o666, dir_fd=folder)
            try:
                left = memoryview(content)
                while left:
                    left = left[os.write(descriptor, left):]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            remove(folder, temporary)
            raise
    except OSError as failure:
        raise failed("write %s/%s" % (folder_path, name), failure) from None


def remove(folder, name):
    """Remove a file; nothing if there is none or it can't be removed."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass


def remove_leftover(folder, name):
    """Remove a temporary file that a killed run left: they live for moments, so an old one."""
    try:
        if (name.startswith(_TEMPORARY)
                and os.lstat(name, dir_fd=folder).st_mtime < time.time() - LEFT_OVER_SECONDS):
            os.unlink(name, dir_fd=folder)
    except OSError:
        pass
