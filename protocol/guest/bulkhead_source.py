"""The source of functions, and what a function needs of the module around it. By syntax trees
alone: `ast` and `inspect` take longer to load than all else here."""
import _ast
import builtins

_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST
_DEFINITIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)
_FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.Lambda)
_STRINGS = (_ast.JoinedStr, _ast.Constant, getattr(_ast, "TemplateStr", _ast.Constant))
_ALWAYS = {"__name__", "__file__", "__doc__", "__builtins__"}


class BadSource(Exception):
    """Something that can't be saved; the text says why."""


def parse(source):
    return compile(source, "<source>", "exec", _ONLY_AST, True)


def nodes_in(tree):
    """All nodes of a tree, itself first, in the order of the source."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(list(_children(node)))


def _children(node):
    for field in node._fields:
        value = getattr(node, field, None)
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, _ast.AST):
                yield child


def definitions(tree, name=None):
    """The functions and classes of a module itself, those of one name or all."""
    return [node for node in tree.body
            if isinstance(node, _DEFINITIONS) and name in (None, node.name)]


def first_line(node):
    """Where a definition begins, decorators included."""
    return min([node.lineno] + [each.lineno for each in node.decorator_list])


# Finding the source

def source_of(thing, sources):
    """(source of a function or class, text of the whole that it is from)."""
    if isinstance(thing, str):
        text = thing.lstrip("\ufeff")
        return text, text
    if isinstance(thing, type):
        text, node = _class_in(thing, sources)
    else:
        text, node = _function_in(thing, sources)
    return _extracted(text, node), text


def _function_in(thing, sources):
    function = thing
    for _ in range(100):  # decorators that say what they wrap
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__func__"):
        raise BadSource("it takes a function, a class, or the source of one, not %s"
                        % _described(thing))
    if code.co_name == "<lambda>":
        raise BadSource("a lambda has no name; write a function: def NAME(…): …")
    if code.co_freevars:
        raise BadSource("%s uses variables of the function around it, or is what a decorator made: "
                        "%s; save a function that doesn't, or give the source as a string"
                        % (code.co_name, ", ".join(code.co_freevars)))
    text = _text(code.co_filename, sources)
    for node in nodes_in(_parsed(text)) if text is not None else ():
        if (isinstance(node, _FUNCTIONS[:2]) and node.name == code.co_name
                and code.co_firstlineno in (node.lineno, first_line(node))):
            return text, node
    raise BadSource("the source of %s isn't known; give it as a string" % code.co_name)


def _class_in(thing, sources):
    module = getattr(thing, "__module__", None)
    if module == "__main__":
        texts = [text.lstrip("\ufeff") for text in sources.latest_first()]
    else:
        import sys

        file = getattr(sys.modules.get(module), "__file__", None)
        texts = [text for text in (_text(file, sources),) if text is not None]
    for text in texts:
        found = [node for node in nodes_in(_parsed(text))
                 if isinstance(node, _ast.ClassDef) and node.name == thing.__name__]
        if found:
            return text, found[-1]
    raise BadSource("the source of the class %s isn't known; give it as a string" % thing.__name__)


def _described(thing):
    kind = type(thing).__name__
    return "the %s %s" % (kind, thing.__name__) if hasattr(thing, "__name__") else "a " + kind


def _text(file, sources):
    """The text that code is from: a run's, or that of a module beside it."""
    text = sources.text_of(file)
    if text is None and isinstance(file, str):
        import linecache

        text = "".join(linecache.getlines(file)) or None
    return text.lstrip("\ufeff") if text is not None else None


def _parsed(text):
    try:
        return parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _ast.Module(body=[], type_ignores=[])


def _lines(text):
    # Not str.splitlines: to Python, a form feed or U+2028 ends no line.
    return text.encode("utf-8", "surrogatepass").splitlines(True)


def _extracted(text, node):
    """The lines of a definition, without the indentation that they have there."""
    start = first_line(node)
    lines = _lines(text)[start - 1:node.end_lineno]
    indentation = lines[0][:len(lines[0]) - len(lines[0].lstrip(b" \t"))]
    inside_strings = set()
    for each in nodes_in(node):
        if isinstance(each, _STRINGS):
            inside_strings.update(range(each.lineno + 1, each.end_lineno + 1))
    for index, line in enumerate(lines):
        if line.startswith(indentation) and start + index not in inside_strings:
            lines[index] = line[len(indentation):]
    return b"".join(lines).decode("utf-8", "surrogatepass")


# What is saved

def cut(text, name):
    """(bytes of the one definition in `text`, its name), called `name` if that isn't None."""
    if not text.endswith("\n"):
        text += "\n"
    try:
        data = text.replace("\r\n", "\n").encode()
        tree = parse(data)
    except UnicodeEncodeError:
        raise BadSource("the source isn't valid Unicode") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
        tree = _indented(text)
        if tree is None:
            raise BadSource("the source doesn't compile: %s, line %s" % (
                getattr(failure, "msg", failure), getattr(failure, "lineno", "unknown"))) from None
        data = _extracted(*tree).encode()
        tree = parse(data)
    if len(tree.body) != 1 or not isinstance(tree.body[0], _DEFINITIONS):
        raise BadSource("the source has to be that of one function or class and nothing else; "
                        "imports go inside it")
    node = tree.body[0]
    try:
        compile(data, "<source>", "exec", 0, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
        raise BadSource("the source doesn't compile: %s, line %s" % (
            getattr(failure, "msg", failure), getattr(failure, "lineno", "unknown"))) from None
    return (data, node.name) if name in (None, node.name) else (_renamed(data, node, name), name)


def _indented(text):
    """(text, node) of a definition that is indented as a whole, as in a string in a function."""
    if text.lstrip("\r\n")[:1] not in (" ", "\t"):
        return None
    whole = "if 1:\n" + text
    try:
        body = parse(whole).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    inside = body[0].body
    if len(body) == 1 and len(inside) == 1 and isinstance(inside[0], _DEFINITIONS):
        return whole, inside[0]
    return None


def _renamed(data, node, name):
    if not isinstance(name, str) or not _is_name(name):
        raise BadSource("%r isn't a name that a function can have" % (name,))
    lines = data.splitlines(True)
    line = lines[node.lineno - 1]
    head, keyword, rest = line[node.col_offset:].partition(
        b"class" if isinstance(node, _ast.ClassDef) else b"def")
    blank = rest[:len(rest) - len(rest.lstrip())]
    old = node.name.encode()
    if not rest[len(blank):].startswith(old):
        raise BadSource("the name of %s can't be replaced; write it as def NAME(" % node.name)
    lines[node.lineno - 1] = (line[:node.col_offset] + head + keyword + blank + name.encode()
                              + rest[len(blank) + len(old):])
    return b"".join(lines)


def _is_name(text):
    try:
        tree = compile(text, "<name>", "eval", _ONLY_AST, True)
    except (SyntaxError, ValueError):
        return False
    return isinstance(tree.body, _ast.Name) and tree.body.id == text


# Names

def names_of_module(tree):
    """The names that a module has, however it gets them."""
    found = set()
    for node in _evaluated_by(tree):
        if not isinstance(node, _ast.arg):
            found.update(_bound_by(node))
    return found


def _bound_by(node):
    if isinstance(node, _ast.Name) and not isinstance(node.ctx, _ast.Load):
        return (node.id,)
    if isinstance(node, _DEFINITIONS):
        return (node.name,)
    if isinstance(node, _ast.arg):
        return (node.arg,)
    if isinstance(node, (_ast.Import, _ast.ImportFrom)):
        return [(each.asname or each.name).partition(".")[0] for each in node.names]
    if isinstance(node, _ast.alias):  # has been looked at with its import
        return ()
    # except … as NAME, and the patterns of match
    names = [getattr(node, field, None) for field in ("name", "rest")]
    return [name for name in names if isinstance(name, str)]


def names_used(source, at_once=False):
    """The names that a definition takes from the module around it; `at_once`: those that it needs
    before it is ever called. What it binds anywhere inside counts as its own."""
    node = parse(source).body[0]
    nodes = list(nodes_in(node))
    own = _ALWAYS | set(builtins.__dict__)
    for each in nodes:
        own.update(_bound_by(each))
    own.discard(node.name)
    if at_once:
        nodes = _evaluated_by(node)
    return {each.id for each in nodes
            if isinstance(each, _ast.Name) and isinstance(each.ctx, _ast.Load)} - own


def _evaluated_by(node):
    """The nodes that a definition or module itself evaluates: not the bodies of functions."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        body = one.body if isinstance(one, _FUNCTIONS) else ()
        skipped = [body] if isinstance(body, _ast.AST) else body
        todo += [child for child in reversed(list(_children(one)))
                 if not any(child is each for each in skipped)]


def imports_of(text, names):
    """{name: statement} for those names that `text` imports outside of functions, its last word
    counting. Not what depends on the run: the modules of MCP servers."""
    found = {}
    for node in _evaluated_by(_parsed(text)):
        module = ""
        if isinstance(node, _ast.ImportFrom):
            if node.level or node.module in ("__future__",) or _is_of_servers(node.module):
                continue
            module = "from %s " % node.module
        elif not isinstance(node, _ast.Import):
            continue
        for each in node.names:
            name = (each.asname or each.name).partition(".")[0]
            if name in names and not (not module and _is_of_servers(each.name)):
                found[name] = "%simport %s%s" % (
                    module, each.name, " as " + each.asname if each.asname else "")
    return found


def _is_of_servers(module):
    return module == "mcp.servers" or module.startswith("mcp.servers.")
