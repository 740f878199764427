"""Saving functions in /projects/user_tools.py, where people and other programs write, too: whatever
isn't the function in question stays as it is, byte for byte."""
import builtins
import os
from itertools import islice

import bulkhead_files
from bulkhead_runtime import PERSISTENT, MCPError
from bulkhead_saved import FILE_BYTES, MODULE, described, file_path
from bulkhead_source import (BadSource, cut, definitions, first_line, imports_of, names_of_module,
                             names_used, parse, source_of)
from bulkhead_store import Locked, failed, remove_leftover, replace

SOURCE_BYTES = 256 * 1024
LOCK = ".user_tools.lock"
_NAMES_SEEN = 1000


def save(function_or_source, name, saved):
    try:
        text, origin = source_of(function_or_source, saved.sources)
        source, name = cut(text, name)
        _check_name(name)
    except BadSource as reason:
        raise MCPError("save_tool: %s" % reason, "invalid_argument") from None
    if len(source) > SOURCE_BYTES:
        raise MCPError("save_tool: the source of %s takes %d bytes, and %d are allowed"
                       % (name, len(source), SOURCE_BYTES), "too_large")
    with _Folder() as folder, folder.locked():
        content, tree = _read_file()
        known = names_of_module(tree)
        added = imports_of(origin, names_used(source) - known - {name})
        missing = names_used(source, at_once=True) - known - set(added) - {name}
        if missing:
            raise MCPError(
                "save_tool: %s can't be defined in a later run, which doesn't have %s; don't use "
                "that in its decorators, defaults, annotations or bases, or save it first"
                % (name, ", ".join(sorted(missing))), "invalid_argument")
        content = _with(content, tree, name, source, added)
        folder.write(content)
    saved.forget()
    absent = names_used(source) - known - set(added) - {name}
    return "Tool %r saved. It will be available in later runs.%s" % (
        name, " They won't have %s, which it uses: import or define that inside it."
        % ", ".join(sorted(absent)) if absent else "")


def delete(name, saved):
    if not isinstance(name, str):
        name = getattr(name, "__name__", name)
    with _Folder() as folder, folder.locked():
        content, tree = _read_file()
        found = definitions(tree, name)
        if not found:
            return False
        lines = content.splitlines(True)
        for node in reversed(found):
            start = first_line(node) - 1
            del lines[start:node.end_lineno]
            while start > 0 and not lines[start - 1].strip():
                start -= 1
                del lines[start]
        folder.write(b"".join(lines))
    saved.forget()
    return True


def listed():
    import ast

    last = {}
    for node in definitions(_read_file()[1]):
        last[node.name] = node
    tools = []
    for name in sorted(last):
        if not name.startswith("_"):
            doc = ast.get_docstring(last[name]) or ""
            tools.append({"name": name, "signature": _signature(ast, last[name]),
                          "doc": doc.strip().partition("\n")[0]})
    return tools


def _signature(ast, node):
    if isinstance(node, ast.ClassDef):
        makers = [each for each in node.body
                  if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not makers:
            return node.name + "()"
        arguments = makers[-1].args
        del (arguments.posonlyargs or arguments.args)[:1]
        return "%s(%s)" % (node.name, ast.unparse(arguments))
    returns = " -> " + ast.unparse(node.returns) if node.returns else ""
    awaited = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return "%s%s(%s)%s" % (awaited, node.name, ast.unparse(node.args), returns)


def _check_name(name):
    if hasattr(builtins, name) or name in PERSISTENT or name == MODULE:
        raise BadSource("%r is the name of something that every run has; choose another" % name)


# The file

class _Folder:
    """Context: /projects, open."""

    def __enter__(self):
        try:
            self._descriptor = bulkhead_files.open_folder(bulkhead_files.FOLDER)
        except OSError as failure:
            raise failed("open %s" % bulkhead_files.FOLDER, failure) from None
        return self

    def __exit__(self, *failure):
        os.close(self._descriptor)

    def locked(self):
        return Locked(self._descriptor, bulkhead_files.FOLDER, LOCK)

    def write(self, content):
        if len(content) > FILE_BYTES:
            raise MCPError("write %s: it would take %d bytes, and %d are allowed; delete tools "
                           "that aren't needed (saved_tools, delete_tool)"
                           % (file_path(), len(content), FILE_BYTES), "too_large")
        with os.scandir(self._descriptor) as entries:
            for entry in islice(entries, _NAMES_SEEN):
                remove_leftover(self._descriptor, entry.name)
        replace(self._descriptor, bulkhead_files.FOLDER, MODULE + ".py", content)


def _read_file():
    """Content and syntax tree of the file, which may be absent."""
    try:
        content = bulkhead_files.read_regular(file_path(), FILE_BYTES)[0]
    except FileNotFoundError:
        content = b""
    except bulkhead_files.Unreadable as reason:
        raise MCPError("read %s: %s; remove it" % (file_path(), reason), "unavailable") from None
    try:
        content.decode("utf-8")
        return content, parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
        raise MCPError("the file isn't valid Python, so it is left alone: %s; repair or remove it"
                       % described(failure), "unavailable") from None


def _with(content, tree, name, source, added):
    """The file with the function in place of its last definition, or at the end."""
    imports = "".join(line + "\n" for line in dict.fromkeys(added.values())).encode()
    found = definitions(tree, name)
    if found:
        lines = content.splitlines(True)
        lines[first_line(found[-1]) - 1:found[-1].end_lineno] = [imports, source]
        return b"".join(lines)
    if content and not content.endswith((b"\n", b"\r")):
        content += b"\n"
    return content + (b"\n\n" if content else b"") + imports + source
