"""Compiles and evaluates the code of a run in the namespace of a real `__main__` module."""
import sys

# ast.PyCF_ONLY_AST and ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without the import of ast.
_ONLY_AST = 0x400
_TOP_LEVEL_AWAIT = 0x2000
_COROUTINE = 0x80  # inspect.CO_COROUTINE


class Sources:
    """The texts of the runs, under pseudo file names, for whoever wants to show source lines.

    Sits in sys.meta_path to notice some imports: `linecache`, which serves tracebacks and
    inspect.getsource and is too dear to load ahead; `multiprocessing.spawn`, whose children load
    `__main__` from a file; `multiprocessing.context`, which chooses how children are made;
    `matplotlib`, whose figures become artifacts. `part(name)` loads a module beside this one."""

    def __init__(self, part):
        self._texts = {}
        self._part = part
        self.latest = None
        sys.meta_path.insert(0, self)

    def add(self, text):
        """Register a run's code; its file name. Relative, so that the folder that code derives
        from `__file__` is the current one."""
        count = len(self._texts)
        self.latest = "<run-%d>" % (count + 1) if count else "<run>"
        self._texts[self.latest] = text
        if "linecache" in sys.modules:
            self._fill(sys.modules["linecache"])
        return self.latest

    def __contains__(self, name):
        return name in self._texts

    def text_of(self, name):
        """A run's code by its file name, or None."""
        return self._texts.get(name)

    def latest_first(self):
        return list(self._texts.values())[::-1]

    def _fill(self, linecache):
        for name, text in self._texts.items():
            linecache.cache[name] = len(text), None, text.splitlines(True), name

    def find_spec(self, name, path=None, target=None):
        if name == "multiprocessing.spawn":
            self._write_latest()
        elif name == "linecache":
            return _with_sequel(name, path, self._fill)
        elif name == "multiprocessing.context":
            return _with_sequel(name, path, _fork_by_default)
        elif name == "matplotlib":
            self._part("bulkhead_figures").prepare()
        elif name == "matplotlib.pyplot":
            return _with_sequel(name, path, self._part("bulkhead_figures").take_over)
        return None

    def _write_latest(self):
        try:
            with open(self.latest, "w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(self._texts[self.latest])
        except OSError:
            pass  # Then spawned children say that the file is missing.


def _with_sequel(name, path, sequel):
    """The spec of a module that, once loaded, is handed to `sequel`."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name, path)
    if spec is None:
        return None
    load = spec.loader.exec_module

    def load_and_go_on(module):
        load(module)
        sequel(module)

    spec.loader.exec_module = load_and_go_on
    return spec


def _fork_by_default(context):
    # As Python did up to 3.13. A server process, which 3.14 uses, loads the code anew, without the
    # `mcp` package that only this process has, and only if the code guards its main part.
    context._default_context._default_context = context._concrete_contexts["fork"]


def evaluate(text, filename, namespace, prepare=None):
    """Run the code; the value of its last statement if that is an expression, else None.
    `prepare(parts, namespace)` comes first and gets the compiled code."""
    parts = _compile(text, filename)
    if prepare is not None:
        prepare(parts, namespace)
    if any(part.co_flags & _COROUTINE for part in parts):
        return _evaluate_in_loop(parts, namespace)
    value = None
    for part in parts:
        value = eval(part, namespace)
    return value


def _compile(text, filename):
    if text.startswith("\ufeff"):
        text = text[1:]
    tree = compile(text, filename, "exec", _ONLY_AST, True)
    try:
        return _code_of(tree, filename, 0)
    except SyntaxError:
        # Perhaps only for an await outside a function. If not, the second error is the one to
        # show: the first may complain of an await that is welcome here.
        return _code_of(tree, filename, _TOP_LEVEL_AWAIT)


def _code_of(tree, filename, flags):
    import _ast

    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr):
        return [compile(tree, filename, "exec", flags, True)]
    first = _ast.Module(body=tree.body[:-1], type_ignores=[])
    return [compile(first, filename, "exec", flags, True),
            compile(_ast.Expression(body=last.value), filename, "eval", flags, True)]


def _evaluate_in_loop(parts, namespace):
    import asyncio

    async def drive():
        value = None
        for part in parts:
            value = eval(part, namespace)
            if part.co_flags & _COROUTINE:
                value = await value
        return value

    _allow_nested_run(asyncio)
    return asyncio.run(drive())


def _allow_nested_run(asyncio):
    """Code with a top-level await runs in a loop, where asyncio.run would refuse: give it a thread
    and a loop of its own, and wait."""
    plain_run = asyncio.runners.run
    if getattr(plain_run, "__wrapped__", None) is not None:
        return

    def run(main, **options):
        if asyncio._get_running_loop() is None:
            return plain_run(main, **options)
        return _run_in_thread(asyncio, plain_run, main, options)

    run.__wrapped__ = plain_run
    run.__doc__ = plain_run.__doc__
    asyncio.run = asyncio.runners.run = run


def _run_in_thread(asyncio, plain_run, main, options):
    import contextvars
    import threading

    outcome = []
    running = []

    async def watched():
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await main

    def work():
        try:
            outcome.append((plain_run(watched(), **options), None))
        except BaseException as failure:
            outcome.append((None, failure))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        raise
    value, failure = outcome[0]
    if failure is not None:
        raise failure
    return value
