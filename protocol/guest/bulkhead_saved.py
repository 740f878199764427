"""Functions that earlier runs saved: the module `user_tools`, and its names where a run uses them.

The file is looked at when a run begins (one failing system call where there is none) and executed
only for a run that has a name of it in its code, or imports it: what it holds, a slow import or an
endless loop, is no concern of other runs. A statement of it that fails is reported and left out.
"""
import builtins
import os
import sys
from _frozen_importlib import ModuleSpec

import bulkhead_files
from bulkhead_report import print_error

MODULE = "user_tools"
FILE_BYTES = 4 * 1024 * 1024
_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST
_DEFINITIONS = (b"def ", b"async def ", b"class ")
_BLOCKS = (b"if", b"el", b"try", b"except", b"finally", b"with", b"for", b"while", b"match",
           b"async with", b"async for")
_WORDS = bytes(byte if byte >= 128 or chr(byte).isidentifier() or 48 <= byte < 58 else 32
               for byte in range(256))
_FUTURES = 0x1fe0000  # __future__: the compiler flags of all features


def file_path():
    return "%s/%s.py" % (bulkhead_files.FOLDER, MODULE)


class SavedTools:
    """Finder and loader of the module, in sys.meta_path, and the giver of its plain names."""

    def __init__(self, sources):
        self.sources = sources
        self._signature = None  # of the file as this process last saw it
        self._given = {}  # plain names in the namespace of the runs: what was put there
        sys.meta_path.insert(0, self)

    # Plain names

    def offer(self, parts, namespace):
        """Put the names of the file into the namespace if the code in `parts` uses one of them."""
        try:
            status = os.lstat(file_path())
        except OSError:
            return
        self._notice_change(status, namespace)
        wanted = _names_in(parts)
        wanted.difference_update(namespace, builtins.__dict__)
        if wanted:
            module = sys.modules.get(MODULE) or self._load_for(wanted)
            if not wanted.isdisjoint(getattr(module, "__dict__", ())):
                self._give(module, namespace)

    def _load_for(self, wanted):
        """The module, if the file has one of the names; on stderr why it can't be read."""
        try:
            content = bulkhead_files.read_regular(file_path(), FILE_BYTES)[0]
            if wanted.isdisjoint(_words_in(content)):
                return None
            code = compile(content, file_path(), "exec", 0, True)
        except FileNotFoundError:
            return None
        except bulkhead_files.Unreadable as reason:
            print_error("Saved tools aren't available: %s: %s\n" % (file_path(), reason))
            return None
        except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
            print_error("Saved tools aren't available: %s\n" % described(failure))
            return None
        if wanted.isdisjoint(code.co_names):
            return None
        module = type(sys)(MODULE)
        module.__spec__ = self._spec()
        module.__loader__ = self
        module.__file__ = file_path()
        sys.modules[MODULE] = module
        try:
            execute(code, content, module.__dict__)
        except BaseException:  # interrupted
            del sys.modules[MODULE]
            raise
        return module

    def _notice_change(self, status, namespace):
        signature = status.st_ino, status.st_size, status.st_mtime_ns
        if signature != self._signature:
            self._signature = signature
            self.forget()
            for name, value in self._given.items():
                if namespace.get(name) is value:
                    del namespace[name]
            self._given.clear()

    def forget(self):
        """The file has changed: the next import reads it again."""
        module = sys.modules.get(MODULE)
        if getattr(module, "__loader__", None) is self:
            del sys.modules[MODULE]

    def _give(self, module, namespace):
        for name, value in vars(module).items():
            if not name.startswith("_") and name not in namespace and not hasattr(builtins, name):
                namespace[name] = self._given[name] = value

    # The module

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        try:
            os.lstat(file_path())
        except OSError:
            return None
        return self._spec()

    def _spec(self):
        spec = ModuleSpec(MODULE, self, origin=file_path())
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        content = self._content()
        execute(compile(content, file_path(), "exec", 0, True), content, module.__dict__)

    def get_source(self, name):
        return self._content().decode("utf-8", "replace")

    def _content(self):
        try:
            return bulkhead_files.read_regular(file_path(), FILE_BYTES)[0]
        except bulkhead_files.Unreadable as reason:
            raise ImportError("%s: %s" % (file_path(), reason), name=MODULE,
                              path=file_path()) from None


def _names_in(parts):
    """Every name that the code has in it: variables, and also attributes and imported modules."""
    names = set()
    todo = list(parts)
    while todo:
        code = todo.pop()
        names.update(code.co_names)
        todo += [constant for constant in code.co_consts if isinstance(constant, type(code))]
    return names


def _words_in(content):
    """The words of the file that may be names of the module, more rather than fewer: far cheaper
    than compiling it. Where no block is but functions and classes, those of lines that aren't
    indented, without parameters."""
    lines = []
    for line in content.splitlines():
        if line[:1] in b" \t":
            continue
        if line.startswith(_BLOCKS) or line.startswith(b"from ") and b"(" in line \
                or line.endswith(b"\\"):
            lines = [content]
            break
        lines.append(line.partition(b"(")[0] if line.startswith(_DEFINITIONS) else line)
    words = set(b"\n".join(lines).translate(_WORDS).split())
    return {word.decode("utf-8", "replace") for word in words}


def execute(code, content, namespace):
    """Execute the file's statements; one that fails is reported, and the next one goes on."""
    namespace.setdefault("__builtins__", builtins)
    statements = None
    while True:
        try:
            exec(code, namespace)
            return
        except KeyboardInterrupt:  # the run's own end
            raise
        except BaseException as failure:
            line, innermost = _lines_of(failure)
            print_error("A part of the saved tools is left out: %s\n"
                        % described(failure, innermost))
        if statements is None:
            flags = code.co_flags & _FUTURES
            statements = compile(content, file_path(), "exec", _ONLY_AST | flags, True).body
        statements = [each for each in statements if _first_line(each) > line]
        import _ast

        rest = _ast.Module(body=statements, type_ignores=[])
        code = compile(rest, file_path(), "exec", flags, True)


def _first_line(statement):
    return min([statement.lineno]
               + [each.lineno for each in getattr(statement, "decorator_list", ())])


def _lines_of(failure):
    """The lines of the file where an exception passed: of its own top level, and the innermost."""
    outer = inner = sys.maxsize
    trace = failure.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file_path():
            inner = trace.tb_lineno
            if outer == sys.maxsize:
                outer = inner
        trace = trace.tb_next
    return outer, inner


def described(failure, line=None):
    """One line about an exception of the file, with the line of the file."""
    line = getattr(failure, "lineno", None) if line is None else line
    text = getattr(failure, "msg", None) or str(failure)
    where = "%s, line %s" % (file_path(), line) if line and line < sys.maxsize else file_path()
    return "%s: %s: %s" % (where, type(failure).__name__, text)
