"""Entry point of the guest, started as `python3 -I -S -B -u entrypoint.py` inside the container.

It takes the standard descriptors away from user code, says `ready`, and only then loads the rest:
the host may send frames from that moment on, they wait in the pipe. Before `ready` nothing is
imported that the interpreter does not already hold (no .pyc files can be relied on: official
Python images ship without them).
"""
import posix
import sys

# Exit status of a guest that broke down itself (sysexits.h, EX_SOFTWARE): no verdict on user code.
GUEST_FAILURE = 70


class Descriptors:
    """Private, close-on-exec descriptors, as high as they go: closing low ranges spares them."""

    def __init__(self):
        limit = posix.sysconf("SC_OPEN_MAX")
        self._next = min(limit, 1024) if limit > 0 else 1024
        self.frames_in = self._keep(0)
        self.frames_out = self._keep(1)
        self.log = self._keep(2)
        null = posix.open("/dev/null", posix.O_RDONLY | posix.O_CLOEXEC)
        posix.dup2(null, 0)
        posix.close(null)
        self.stdout_read, self.stdout_write = self._pipe_at(1)
        self.stderr_read, self.stderr_write = self._pipe_at(2)

    def _keep(self, descriptor):
        self._next -= 1
        return posix.dup2(descriptor, self._next, False)

    def _pipe_at(self, descriptor):
        read_end, write_end = posix.pipe()
        posix.dup2(write_end, descriptor)
        kept = self._keep(read_end), self._keep(write_end)
        posix.close(read_end)
        posix.close(write_end)
        return kept

    def all(self):
        return (self.frames_in, self.frames_out, self.log, self.stdout_read, self.stdout_write,
                self.stderr_read, self.stderr_write)


def main():
    descriptors = Descriptors()

    def give_up(failure):
        """Say on the container's own stderr why the guest, not the user's code, cannot go on."""
        try:
            posix.write(descriptors.log, describe(failure).encode("utf-8", "replace"))
        except OSError:
            pass
        posix._exit(GUEST_FAILURE)

    try:
        ready = '{"type":"ready","python":"%d.%d.%d","protocol":1}\n' % sys.version_info[:3]
        posix.write(descriptors.frames_out, ready.encode())
        sys.path.insert(0, __file__.rpartition("/")[0] or ".")
        import bulkhead_session
        del sys.path[0]
        bulkhead_session.Session(descriptors, give_up).serve()
    except BaseException as failure:
        give_up(failure)


def describe(failure):
    lines = ["guest: %s: %s" % (type(failure).__name__, failure)]
    trace = failure.__traceback__
    while trace is not None:
        lines.append("  at %s:%d" % (trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return "\n".join(lines) + "\n"


main()
