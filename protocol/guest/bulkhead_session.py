"""The guest's main thread: takes frames from the host, executes code, and sees each run to its end.

A process executes one run or several, one after the other; what belongs to the process is here.
"""
import builtins
import os
import posix
import sys
import time
import _signal
import _thread
from _weakref import ref as weak_reference

import bulkhead_proxies
from bulkhead_channel import Channel
from bulkhead_code import Sources, evaluate
from bulkhead_json import encode, to_bytes
from bulkhead_output import Pump, flush_streams, install_print, open_streams
from bulkhead_report import Outcome, print_error
from bulkhead_saved import SavedTools
from bulkhead_unawaited import warn_of_unawaited

INSIST_SECONDS = 0.02


class Session:
    """One interpreter serving the host."""

    def __init__(self, descriptors, give_up):
        self._descriptors = descriptors
        self._channel = Channel(descriptors.frames_in, descriptors.frames_out, give_up)
        self._channel.on_cancel = self._cancel
        self._pumps = [
            Pump("stdout", descriptors.stdout_read, descriptors.stdout_write, 1, self._channel),
            Pump("stderr", descriptors.stderr_read, descriptors.stderr_write, 2, self._channel)]
        self._main_thread = _thread.get_ident()
        self._run_id = None
        self._cancelled = None  # the run that the host last asked to interrupt
        self._interruptible = False
        self._noticed = False
        self._ending = _thread.allocate_lock()  # held to interrupt a run, and to say it is over
        self._shelved = {}  # signal handlers of user code, between two runs
        self._sources = None
        self._saved = None
        self._main = None
        self._workspace = None

    def serve(self):
        """Take frames until the host closes the channel; does not return."""
        self._start_threads()
        self._prepare_interpreter()
        while True:
            frame = self._channel.inbox.get()
            if frame["type"] == "init":
                self._init(frame)
            elif frame["type"] == "execute":
                self._execute(frame)

    def _start_threads(self):
        # Small stacks: a memory limit may count address space.
        previous = _thread.stack_size(512 * 1024)
        self._channel.start()
        for pump in self._pumps:
            pump.start(self._channel.guarded)
        _thread.stack_size(previous)

    # Once per process

    def _prepare_interpreter(self):
        self._sources = Sources(bulkhead_proxies.runtime._part)
        self._saved = bulkhead_proxies.runtime._saved = SavedTools(self._sources)
        self._main = type(sys)("__main__")
        self._main.__builtins__ = builtins
        sys.modules["__main__"] = self._main
        sys.argv = ["<run>"]
        self._workspace = os.getcwd()
        self._extend_path()
        os.environ.setdefault("MPLBACKEND", "Agg")
        os.environ.setdefault("MPLCONFIGDIR", "/tmp/matplotlib")
        self._add_site_builtins()
        install_print()
        posix.register_at_fork(before=_expect_fork, after_in_child=self._disown)
        os._exit = self._exit_after_output

    def _extend_path(self):
        version = "python%d.%d" % sys.version_info[:2]
        folders = ("/usr/local/lib/%s/dist-packages" % version, "/usr/lib/python3/dist-packages",
                   "%s/lib/%s/site-packages" % (sys.prefix, version))
        sys.path.insert(0, self._workspace)
        sys.path += [folder for folder in folders if os.path.isdir(folder)]
        # Last: what a tenant keeps there must not stand in for a module of the library.
        sys.path.append("/projects")

    def _add_site_builtins(self):
        from _sitebuiltins import Quitter, _Helper

        builtins.exit = Quitter("exit", "Ctrl-D")
        builtins.quit = Quitter("quit", "Ctrl-D")
        builtins.help = _Helper()

    def _disown(self):
        """In a forked child: the frames and the pumps belong to the parent."""
        self._channel.disowned = True
        warn_of_unawaited()  # They are the parent's.
        for descriptor in self._descriptors.all():
            try:
                posix.close(descriptor)
            except OSError:
                pass

    def _exit_after_output(self, status):
        """os._exit: ends the process at once, but lets the output written so far out first."""
        if not self._channel.disowned:
            self._interruptible = False
            for pump in self._pumps:
                pump.flush()
        posix._exit(status)

    def _init(self, frame):
        limits = frame.get("limits", {})
        self._channel.calls_in_flight = limits.get("callsInFlight", self._channel.calls_in_flight)
        self._channel.frame_bytes = limits.get("frameBytes", self._channel.frame_bytes)
        self._channel.artifact_bytes = limits.get("artifactBytes", self._channel.artifact_bytes)
        self._channel.artifacts_bytes = limits.get("artifactsBytes", self._channel.artifacts_bytes)
        self._channel.artifacts = limits.get("artifacts", self._channel.artifacts)
        for pump in self._pumps:
            pump.frame_limit = limits.get("outputChunkBytes", pump.frame_limit)
        servers = frame["servers"]
        names = bulkhead_proxies.install(self._channel, servers, frame.get("discovered", servers),
                                         frame.get("autoload", False))
        self._main.__dict__.update(names)
        os.environ["MCP_AVAILABLE_SERVERS"] = encode([server["name"] for server in servers])

    # One run

    def _execute(self, frame):
        """`session`: other runs may follow in this process, so that only what belongs to this run
        ends with it. Without, the run ends as the interpreter does."""
        run_id, goes_on = frame["id"], frame.get("session", False)
        outcome = Outcome(run_id, self._sources)
        earlier = _threads() if goes_on else ()
        self._begin(run_id, frame["code"])
        try:
            self._run(frame, outcome)
            self._finish(outcome, goes_on, earlier)
        except BaseException as late:  # of a signal, between two of the steps
            self._interruptible = False
            outcome.ended_by(late)
        self._interruptible = False
        if self._channel.disowned:
            # A forked child came out of the user's code: it ends like a script.
            posix._exit(outcome.exit_code)
        self._shelve_handlers()
        for pump in self._pumps:
            pump.finish()
        with self._ending:
            self._run_id = None
        self._channel.close(outcome.frame())

    def _begin(self, run_id, code):
        for pump in self._pumps:
            pump.begin()
        open_streams()
        self._main.__file__ = self._sources.add(code)
        # A warning is shown once for a line, and this run's lines are others.
        self._main.__dict__.pop("__warningregistry__", None)
        self._channel.open()
        _signal.signal(_signal.SIGINT, self._interrupt)
        self._run_id = run_id
        # Until the host has this, it may give the run to another guest.
        self._channel.write(to_bytes(encode({"type": "started", "id": run_id})) + b"\n")

    def _run(self, frame, outcome):
        try:
            while self._shelved:
                _signal.signal(*self._shelved.popitem())
            # From here on an interrupt raises; one that came earlier does so now.
            self._interruptible = True
            if self._cancelled == self._run_id:
                raise KeyboardInterrupt
            if frame.get("files"):
                bulkhead_proxies.runtime._part("bulkhead_inputs").write(frame["files"],
                                                                       self._workspace)
            outcome.succeeded(evaluate(frame["code"], self._main.__file__, self._main.__dict__,
                                       self._saved.offer))
        except BaseException as failure:
            outcome.ended_by(failure)
        finally:
            sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))

    def _finish(self, outcome, goes_on, earlier):
        """What the interpreter does at its end: wait for threads, run atexit functions, flush. If
        others follow: wait for threads that this run started, unless it was cancelled, but for
        those of a pool that is still held; atexit functions might close what is still needed."""
        try:
            if not goes_on:
                _wait_for_threads()
            elif self._cancelled != self._run_id:
                _wait_for_threads(earlier, close_pools=False)
            self._save_figures()
            if not goes_on:
                _run_exit_functions()
            _warn_of_unawaited()
            flush_streams()
        except BaseException as failure:
            outcome.ended_by(failure)

    def _save_figures(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and not self._channel.disowned:
            bulkhead_proxies.runtime._part("bulkhead_figures").save_open(
                pyplot, discard=self._cancelled == self._run_id)

    # Signals

    def _shelve_handlers(self):
        """Between two runs no handler of user code may raise in the guest, nor any trace function;
        signals that come then are dropped."""
        sys.settrace(None)
        sys.setprofile(None)
        for number in range(1, _signal.NSIG):
            handler = _signal.getsignal(number)
            if callable(handler) and number != _signal.SIGINT:
                self._shelved[number] = handler
                _signal.signal(number, _drop_signal)
        _signal.signal(_signal.SIGINT, self._interrupt)

    def _cancel(self, run_id):
        """On the reader thread, which must not wait."""
        self._cancelled = run_id
        if run_id == self._run_id:
            try:
                _thread.start_new_thread(self._insist, (run_id,))
            except RuntimeError:  # no more threads may be started
                self._signal_main(run_id)

    def _insist(self, run_id):
        """Interrupt the main thread by a signal, so that blocking system calls end too. One that
        comes just before such a call is noticed only after it: repeat until it was noticed. User
        code's own handler gets it once, like any other signal."""
        self._noticed = False
        while not self._noticed and self._signal_main(run_id):
            if _signal.getsignal(_signal.SIGINT) != self._interrupt:
                return
            time.sleep(INSIST_SECONDS)

    def _signal_main(self, run_id):
        """Signal the main thread if the run isn't over; whether that was so. Once a run is over no
        signal is under way that could hit the next one."""
        with self._ending:
            if run_id != self._run_id:
                return False
            _signal.pthread_kill(self._main_thread, _signal.SIGINT)
            return True

    def _interrupt(self, number, frame):
        # Not signal.default_int_handler: asyncio would replace it by one that only cancels the
        # main task, which does not end a blocking call.
        self._noticed = True
        if self._interruptible:
            raise KeyboardInterrupt


def _expect_fork():
    """The threads that Python 3.12 and later warn of are the guest's own; a child does not use
    their locks."""
    if sys.version_info >= (3, 12):
        import warnings

        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)


def _drop_signal(number, frame):
    pass


def _threads():
    threading = sys.modules.get("threading")
    return threading.enumerate() if threading is not None else []


def _wait_for_threads(earlier=(), close_pools=True):
    """Wait for threads that aren't daemons, the `earlier` ones excepted. Pools that are still held
    are closed after their work, or left alone."""
    while True:
        left = [thread for thread in _threads()
                if not thread.daemon and thread.ident != _thread.get_ident()
                and thread not in earlier
                and (close_pools or _executor_of(thread) is None)]
        if not left:
            return
        for thread in left:
            executor = _executor_of(thread)
            if executor is not None:
                executor.shutdown(wait=True)
            thread.join()


def _executor_of(thread):
    """The pool that a thread of concurrent.futures serves: it waits for work until its pool is shut
    down, which the interpreter would do now."""
    futures = sys.modules.get("concurrent.futures")
    if futures is None:
        return None
    reference = getattr(thread, "executor_reference", None)
    if reference is None:
        reference = next(iter(getattr(thread, "_args", None) or ()), None)
    if isinstance(reference, weak_reference):
        executor = reference()
        if isinstance(executor, futures.Executor):
            return executor
    return None


def _warn_of_unawaited():
    text = warn_of_unawaited()
    if text:
        print_error(text)


def _run_exit_functions():
    atexit = sys.modules.get("atexit")
    if atexit is not None:
        try:
            atexit._run_exitfuncs()
        except Exception:
            pass  # Python has shown it; up to 3.9 it also raises the last one.
