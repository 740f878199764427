"""Helpers for code in the sandbox: which MCP servers and tools there are, and calling them.

`capability_summary()` explains all of it.
"""
import sys

from bulkhead_channel import AwaitedCall, Call
from bulkhead_json import check_shape, encode, to_bytes
from bulkhead_unawaited import UnawaitedCall

__name__ = "mcp.runtime"  # What follows belongs to this module, as tracebacks and pickles see it.

# Also to be had as plain names.
PERSISTENT = (
    "save_tool", "saved_tools", "delete_tool", "save_memory", "load_memory", "list_memories",
    "update_memory", "delete_memory", "memory_exists", "get_memory_info")
ARTIFACTS = ("save_file", "save_image", "display")
__all__ = [
    "LOADED_MCP_SERVERS", "MCPError", "MemoryQuotaError", "call_tool", "call_tool_sync",
    "capability_summary", "describe_server", "discovered_servers", "list_loaded_server_metadata",
    "list_servers", "list_servers_sync", "list_tools", "list_tools_sync", "query_tool_docs",
    "query_tool_docs_sync", "search_tool_docs", "search_tool_docs_sync", "tool_stubs",
    "tool_stubs_sync",
    *ARTIFACTS, *PERSISTENT]

LOADED_MCP_SERVERS = ()
_channel = None
_saved = None
_loaded = []
_discovered = []


class MCPError(Exception):
    """A call that failed. `code` says how: `tool_error` if the tool itself reported it, then
    `content`, `structured` and the whole `result` are what it returned; else why it was not
    answered. `server` and `tool` are the names that were called, if any."""

    def __init__(self, message, code="tool_error", content=None, result=None, server=None,
                 tool=None):
        super().__init__(message)
        self.message = message
        self.code = code
        self.content = content
        self.structured = result.get("structuredContent") if result else None
        self.result = result
        self.server = server
        self.tool = tool


class ToolDocs(list):
    """What a search found; `note` says what it left out, and is shown with it."""

    note = None

    def __repr__(self):
        return list.__repr__(self) + ("  # " + self.note if self.note else "")


class MemoryQuotaError(MCPError):
    """The memories would become too many or too large; nothing was changed."""

    def __init__(self, message):
        super().__init__(message, "quota")


def _configure(channel, servers, discovered):
    global LOADED_MCP_SERVERS, _channel, _loaded, _discovered
    _channel = channel
    _loaded = servers
    _discovered = discovered
    LOADED_MCP_SERVERS = tuple(server["name"] for server in servers)


# Requests

def _running_loop():
    # Code that never imported asyncio has no loop, and asking must not import it.
    events = sys.modules.get("asyncio.events")
    return events._get_running_loop() if events is not None else None


def _request(payload, convert=None, label="request", expression=None):
    """An awaitable where this thread runs an event loop, else the answer itself."""
    body = _body_of(payload)
    tool = _tool_of(payload)
    loop = _running_loop()
    if loop is None:
        return _wait(body, convert, tool)
    return UnawaitedCall(lambda: _wait_in_loop(body, convert, tool, loop), label,
                         expression or label + "(…)")


def _request_sync(payload, convert=None):
    return _wait(_body_of(payload), convert, _tool_of(payload))


def _tool_of(payload):
    """Server and tool that a request is about, for errors; None where it has none."""
    return payload.get("server"), payload.get("tool")


def _body_of(payload):
    try:
        check_shape(payload)
        body = to_bytes(encode(payload))
    except (TypeError, ValueError, RecursionError) as failure:
        raise MCPError(
            "the arguments cannot be sent as JSON: %s; pass None, bool, int, finite float, str, "
            "list, tuple and dict only" % failure, "invalid_argument") from None
    if len(body) > _channel.frame_bytes:
        raise MCPError("the arguments take %d bytes as JSON, and a call may take %d; pass less, or "
                       "in several calls" % (len(body), _channel.frame_bytes), "too_large")
    return body


def _wait(body, convert, tool):
    call = Call(body)
    try:
        _channel.submit(call)
        answer = call.wait()
    except BaseException:
        _channel.abandon(call)
        raise
    return _result_of(answer, convert, tool)


async def _wait_in_loop(body, convert, tool, loop):
    call = AwaitedCall(body, loop)
    try:
        _channel.submit(call)
        answer = await call.wait()
    except BaseException:
        _channel.abandon(call)
        raise
    return _result_of(answer, convert, tool)


def _result_of(answer, convert, tool):
    if not answer["success"]:
        error = answer["error"]
        raise MCPError(error["message"], error["code"], None, None, *tool)
    payload = answer.get("payload")
    return payload if convert is None else convert(payload, *tool)


def _unwrap(result, server, tool):
    """The value of a CallToolResult, as code wants it."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block, dict)
             and block.get("type") == "text" and isinstance(block.get("text"), str)]
    if result.get("isError"):
        raise MCPError("tool %r of server %r failed: %s"
                       % (tool, server, "\n".join(texts) or "it doesn't say why"),
                       "tool_error", blocks, result, server, tool)
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    if len(texts) < len(blocks):
        return blocks
    return "\n".join(texts) if texts else None


def _name_of(server):
    return server if isinstance(server, str) else getattr(server, "__server__", server)


def _call_payload(server, tool, arguments):
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise MCPError("the arguments of a tool are a dict, not %s" % type(arguments).__name__,
                       "invalid_argument")
    return {"type": "call_tool", "server": _name_of(server), "tool": tool, "arguments": arguments}


def _tool_call(server, tool, arguments, raw=False):
    return _request(_call_payload(server, tool, arguments), None if raw else _unwrap,
                    "%s.%s" % (server, tool), _expression_of(server, tool))


def _expression_of(server, tool):
    alias = next((each["alias"] for each in _loaded if each["name"] == server), server)
    return "mcp_%s%s(…)" % (alias, "." + tool if tool.isidentifier() else "[%r]" % tool)


def _docs_payload(server, tool, detail):
    payload = {"type": "query_tool_docs", "server": _name_of(server), "detail": detail}
    if tool is not None:
        payload["tool"] = tool
    return payload


def _search_payload(query, limit, detail, server):
    payload = {"type": "search_tool_docs", "query": query, "limit": limit, "detail": detail}
    if server is not None:
        payload["server"] = _name_of(server)
    return payload


def _found(answer, *_):
    docs = ToolDocs(answer["tools"])
    docs.note = answer.get("note")
    return docs


# What the host answers

def call_tool(server, tool, arguments=None, *, raw=False):
    """Call a tool by the names of its server and itself. `raw=True`: the whole CallToolResult, also
    of a failed tool, instead of its value."""
    return _request(_call_payload(server, tool, arguments), None if raw else _unwrap, "call_tool")


def call_tool_sync(server, tool, arguments=None, *, raw=False):
    """As call_tool, returning the value at once."""
    return _request_sync(_call_payload(server, tool, arguments), None if raw else _unwrap)


def list_servers():
    """The servers that this run may call: name, alias, description."""
    return _request({"type": "list_servers"}, label="list_servers")


def list_servers_sync():
    """As list_servers, returning the value at once."""
    return _request_sync({"type": "list_servers"})


def list_tools(server):
    """The tools of one server: name, alias, description, inputSchema, …"""
    return _request({"type": "list_tools", "server": _name_of(server)}, label="list_tools")


def list_tools_sync(server):
    """As list_tools, returning the value at once."""
    return _request_sync({"type": "list_tools", "server": _name_of(server)})


def query_tool_docs(server, tool=None, detail="summary"):
    """Documents of one tool or all tools of a server; detail "full" adds the schemas."""
    return _request(_docs_payload(server, tool, detail), label="query_tool_docs")


def query_tool_docs_sync(server, tool=None, detail="summary"):
    """As query_tool_docs, returning the value at once."""
    return _request_sync(_docs_payload(server, tool, detail))


def search_tool_docs(query, *, limit=5, detail="summary", server=None):
    """Documents of the tools that fit `query` best, of one server or all configured ones; `toCall`
    is what to do to call a tool that this run can't."""
    return _request(_search_payload(query, limit, detail, server), _found, "search_tool_docs")


def search_tool_docs_sync(query, *, limit=5, detail="summary", server=None):
    """As search_tool_docs, returning the value at once."""
    return _request_sync(_search_payload(query, limit, detail, server), _found)


def tool_stubs(server):
    """A type stub (.pyi text) of a server's tools, as `mcp.servers.<alias>` has them."""
    return _request(_docs_payload(server, None, "stubs"), label="tool_stubs")


def tool_stubs_sync(server):
    """As tool_stubs, returning the value at once."""
    return _request_sync(_docs_payload(server, None, "stubs"))


def _part(name):
    """A module beside this one, loaded when it is first needed."""
    if name not in sys.modules:
        folder = __file__.rpartition("/")[0] or "."
        sys.path.insert(0, folder)
        try:
            return __import__(name)
        finally:
            sys.path.remove(folder)
    return __import__(name)


# What the user gets besides output

def save_file(path_or_name, data=None, mime_type=None):
    """Give the user a file: one that exists, by its path, or a name and its content (bytes or
    text). Returns its name, which may have got a number to be unique in this run."""
    return _part("bulkhead_artifacts").save_file(path_or_name, data, mime_type)


def save_image(image, name=None):
    """Give the user an image: a matplotlib figure, a PIL image, an array (2-D, or 3-D with 1 to 4
    channels; uint8, or floats from 0 to 1), an image file's bytes or path. Returns its name."""
    return _part("bulkhead_images").save_image(image, name)


def display(*objects):
    """Show the user objects as richly as they can be: figures, images, whatever has a `_repr_html_`
    or the like, lists and dicts as JSON; others are printed. Returns the artifact's name, None
    if there is none, a list for several objects."""
    return _part("bulkhead_display").display(*objects)


# What stays for later runs, in /projects

def save_tool(function_or_source, name=None):
    """Save a function or class, or the source of one, for later runs: there it is a plain name, and
    in the module user_tools. Replaces an earlier one of the name."""
    return _part("bulkhead_tools").save(function_or_source, name, _saved)


def saved_tools():
    """The saved functions and classes: dicts with name, signature, doc (its first line)."""
    return _part("bulkhead_tools").listed()


def delete_tool(name):
    """Remove a saved function or class; whether there was one."""
    return _part("bulkhead_tools").delete(name, _saved)


def save_memory(key, value, metadata=None):
    """Keep a JSON-able value for later runs. `metadata`: a dict; None keeps what was there."""
    return _part("bulkhead_memory").save(key, value, metadata)


def load_memory(key, default=None):
    """The value of a key as JSON has it (a tuple is a list), or `default`."""
    return _part("bulkhead_memory").load(key, default)


def list_memories(prefix=None):
    """Dicts with key, metadata, created_at, updated_at (seconds since 1970), size, by key."""
    return _part("bulkhead_memory").listed(prefix)


def update_memory(key, function_or_value, default=None):
    """Replace a value by function(value), `default` where there is none, or by another value;
    returns the new one. No other run comes in between."""
    return _part("bulkhead_memory").update(key, function_or_value, default)


def delete_memory(key):
    """Remove a memory; whether there was one."""
    return _part("bulkhead_memory").delete(key)


def memory_exists(key):
    """Whether there is a memory of this key."""
    return _part("bulkhead_memory").exists(key)


def get_memory_info(key):
    """A dict with key, value, metadata, created_at, updated_at (seconds since 1970) and size (bytes
    of its file), or None."""
    return _part("bulkhead_memory").info(key)


# What is known here

def discovered_servers(detailed=False):
    """The names of all configured servers, called by this run or not; `detailed`: as dicts with
    name, alias, description and loaded."""
    if detailed:
        return [_described(server) for server in _discovered]
    return [server["name"] for server in _discovered]


def describe_server(name):
    """Name, alias and description of one server, and whether this run may call it (`loaded`)."""
    name = _name_of(name)
    for server in _loaded + _discovered:
        if name in (server["name"], server["alias"]):
            return _described(server)
    raise MCPError("there is no server %r; known are %s" % (name, _listed(_discovered)),
                   "not_found")


def list_loaded_server_metadata():
    """Name, alias and description of the servers that this run may call."""
    return [_described(server) for server in _loaded]


def capability_summary():
    """How to use all this, and the servers that this run may call."""
    with open(__file__.rpartition("/")[0] + "/capabilities.md", encoding="utf-8") as text:
        summary = text.read()
    lines = ["- `mcp_%s` (%s): %s" % (server["alias"], server["name"], server["description"])
             for server in _loaded]
    return "%s\n## Servers of this run\n%s\n" % (summary, "\n".join(lines) or "None.")


def _described(server):
    return {"name": server["name"], "alias": server["alias"],
            "description": server.get("description", ""),
            "loaded": server["name"] in LOADED_MCP_SERVERS}


def missing_server_hint(name):
    """What to do about a server (by name or alias) that this run doesn't have."""
    for server in _discovered:
        if name in (server["name"], server["alias"]):
            return 'did you forget servers=["%s"] in run_python?' % server["name"]
    return "no server is called %r; configured are: %s" % (name, _listed(_discovered))


def _listed(servers):
    return ", ".join(server["name"] for server in servers) or "none"
