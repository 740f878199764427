"""The names by which code reaches the servers: mcp_<alias>, mcp_servers, mcp.servers.<alias>."""
import builtins
import sys

import bulkhead_runtime as runtime

Module = type(sys)


class Tool:
    """One tool of a server, to be called."""

    __slots__ = ("__server__", "__name__")

    def __init__(self, server, name):
        self.__server__ = server
        self.__name__ = name

    # Positional-only, so that an argument may have any name, `self` too.
    def __call__(self, /, *positional, **arguments):
        return runtime._tool_call(self.__server__, self.__name__,
                                  _arguments_of(self, positional, arguments))

    def raw(self, /, *positional, **arguments):
        """The whole result, also of a tool that failed: all content blocks, isError, _meta."""
        return runtime._tool_call(self.__server__, self.__name__,
                                  _arguments_of(self, positional, arguments), True)

    def __repr__(self):
        return "<MCP tool %r of server %r: call it with keyword arguments>" % (
            self.__name__, self.__server__)


def _arguments_of(tool, positional, arguments):
    if len(positional) > 1 or (positional and not isinstance(positional[0], dict)):
        raise runtime.MCPError(
            "%s.%s takes keyword arguments, or one dict with all of them"
            % (tool.__server__, tool.__name__), "invalid_argument", None, None, tool.__server__,
            tool.__name__)
    return {**positional[0], **arguments} if positional else arguments


class Server(Module):
    """A server: its attributes are its tools. Only double-underscore names are its own, so that no
    tool clashes; names are resolved by the host, call by call."""

    def __init__(self, name, alias, description):
        super().__init__("mcp.servers." + alias, description)
        self.__dict__["__server__"] = name
        self.__dict__["__package__"] = "mcp.servers"

    def __getattr__(self, name):
        if name == "__all__":
            return dir(self)
        # Python's own names end in exactly two; the alias of a tool "__init__" is "__init___".
        if name.startswith("__") and name.endswith("__") and not name.endswith("___"):
            raise AttributeError("module %r has no attribute %r" % (self.__name__, name))
        return Tool(self.__server__, name)

    def __getitem__(self, name):
        return Tool(self.__server__, name)

    def __dir__(self):
        return [tool["alias"] for tool in runtime.list_tools_sync(self.__server__)]

    def __repr__(self):
        return "<MCP server %r: call its tools as %s.TOOL(**arguments); dir() lists them>" % (
            self.__server__, "mcp_" + self.__name__.rpartition(".")[2])


class Servers(dict):
    """The servers by name; an alias works too."""

    def __init__(self, proxies):
        super().__init__((proxy.__server__, proxy) for proxy in proxies)
        self._aliases = {proxy.__name__.rpartition(".")[2]: proxy for proxy in proxies}

    def __missing__(self, name):
        if name in self._aliases:
            return self._aliases[name]
        raise runtime.MCPError("this run has no server %r; it has %s; %s"
                               % (name, ", ".join(map(str, self)) or "none",
                                  runtime.missing_server_hint(name)), "not_found")

    def __contains__(self, name):
        return dict.__contains__(self, name) or name in self._aliases

    def get(self, name, default=None):
        return self[name] if name in self else default


def install(channel, servers, discovered, autoload=False):
    """Make the modules and the global names; returns those names for the run's namespace.
    `autoload`: the host loads what else was discovered when it is first called."""
    runtime._configure(channel, servers, discovered)
    if autoload:
        loaded = {server["name"] for server in servers}
        servers = servers + [each for each in discovered if each["name"] not in loaded]
    proxies = [Server(server["name"], server["alias"], server.get("description"))
               for server in servers]
    package = Module("mcp", "MCP servers: `mcp.servers.<alias>`, helpers: `mcp.runtime`.")
    package.__path__ = []
    package.runtime = runtime
    package.servers = Module("mcp.servers", "One module per server that this run may call.")
    package.servers.__path__ = []
    package.servers.__all__ = [server["alias"] for server in servers]
    sys.modules.update({"mcp": package, "mcp.runtime": runtime, "mcp.servers": package.servers})
    names = {"mcp_servers": Servers(proxies), "LOADED_MCP_SERVERS": runtime.LOADED_MCP_SERVERS}
    for server, proxy in zip(servers, proxies):
        sys.modules[proxy.__name__] = proxy
        setattr(package.servers, server["alias"], proxy)
        names["mcp_" + server["alias"]] = proxy
    builtins.__dict__.update(names)
    # Not in the namespace of the run: no clutter, and a function of that name is nobody's loss.
    builtins.__dict__.update((name, getattr(runtime, name))
                             for name in runtime.PERSISTENT + runtime.ARTIFACTS)
    return names
