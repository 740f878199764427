"""A stdio MCP server with peculiarities, which its arguments switch on:

slow-start=SECONDS    takes that long before it reads anything
noise                 prints lines that are no messages, between its messages
pages=N               lists its tools in pages of N
repeat-cursor         gives the same cursor for ever
many-tools=N          has N tools more
stubborn              ignores the end of its input and SIGTERM
descendants           starts a process in a session of its own, and another one of that kind for each call
exit-at-once=TEXT     writes TEXT to stderr and exits with status 3
garbage               answers everything with what is no JSON
odd-names             has tools with names that are no identifiers

With STARTS set it appends its pid to that file when it starts; with CANCELS set, the request id of each
notifications/cancelled, and with CALLS set, the name of each tool called. Python's standard library only."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

BEHAVIOURS = dict(argument.partition("=")[::2] for argument in sys.argv[1:])
ODD_NAMES = ["read-file", "read_file", "read.file", "grüße", "日本語", "class", "1st", "a/b c", "__init__",
             "*"]
write_lock = threading.Lock()


def note(variable, text):
    if os.environ.get(variable):
        with open(os.environ[variable], "a", encoding="utf-8") as file:
            file.write(text + "\n")


def write(text):
    with write_lock:
        if "noise" in BEHAVIOURS:
            text = ('Starting up...\n\n123\n"text"\n[]\n{"level":"info"}\n'
                    '{"jsonrpc":"2.0","id":99,"result":{}}\n'
                    '\x1b[31mred\x1b[0m\n' + text + "\nnull\n{broken\n")
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


def start_descendant():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid


def text(value, error=False):
    return {"content": [{"type": "text", "text": value}], "isError": error}


def blob(arguments):
    return text("x" * arguments["size"])


def structured(arguments):
    return {"content": [{"type": "text", "text": "see structuredContent"}], "structuredContent": arguments}


def image(arguments):
    return {"content": [{"type": "text", "text": "a picture"},
                        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}


def die(arguments):
    sys.stderr.write("dying now, " + os.environ.get("SECRET", "no secret") + "\n")
    sys.stderr.flush()
    os._exit(arguments.get("code", 9))


def close_stdout(arguments):
    """Closes it and goes on living; nothing is answered any more."""
    os.close(1)
    time.sleep(600)


def hang(arguments):
    time.sleep(600)


def wait(arguments):
    time.sleep(arguments["seconds"])
    return text("waited")


TOOLS = {
    "blob": blob,
    "structured": structured,
    "image": image,
    "die": die,
    "hang": hang,
    "close_stdout": close_stdout,
    "wait": wait,
    "echo": lambda arguments: text(str(arguments.get("message"))),
    "fail": lambda arguments: text("it failed", True),
    "environment": lambda arguments: text(json.dumps(dict(os.environ))),
    "arguments": lambda arguments: text(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd()})),
    "pid": lambda arguments: text(str(os.getpid())),
    "descend": lambda arguments: text(str(start_descendant())),
}
for number in range(int(BEHAVIOURS.get("many-tools", "0"))):
    TOOLS[f"tool_{number:04}"] = lambda arguments, number=number: text(f"number {number}")
if "odd-names" in BEHAVIOURS:
    TOOLS.update({name: lambda arguments, name=name: text("called " + name) for name in ODD_NAMES})


def list_tools(params):
    names = sorted(TOOLS)
    size = int(BEHAVIOURS.get("pages") or len(names))
    begin = int(params.get("cursor") or 0)
    result = {"tools": [{"name": name, "description": f"The tool {name}", "inputSchema": {"type": "object"}}
                        for name in names[begin:begin + size]]}
    if "repeat-cursor" in BEHAVIOURS:
        result["nextCursor"] = "0"
    elif begin + size < len(names):
        result["nextCursor"] = str(begin + size)
    return result


def answer(message):
    method, params = message["method"], message.get("params") or {}
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if "garbage" in BEHAVIOURS:
        write("<html>no JSON here</html>")
        return
    if method == "initialize":
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "odd", "version": "1"}}
    elif method == "tools/list":
        reply["result"] = list_tools(params)
    elif method == "tools/call" and params.get("name") in TOOLS:
        note("CALLS", params["name"])
        reply["result"] = TOOLS[params["name"]](params.get("arguments") or {})
    elif method == "ping":
        reply["result"] = {}
    else:
        reply["error"] = {"code": -32601, "message": "method not found"}
    write(json.dumps(reply))


def main():
    note("STARTS", str(os.getpid()))
    if "exit-at-once" in BEHAVIOURS:
        sys.stderr.write(BEHAVIOURS["exit-at-once"] + "\n")
        sys.exit(3)
    if "stubborn" in BEHAVIOURS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "descendants" in BEHAVIOURS:
        start_descendant()
    time.sleep(float(BEHAVIOURS.get("slow-start", "0")))
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            note("CANCELS", str(message["params"]["requestId"]))
        elif "id" in message and "method" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()
    while "stubborn" in BEHAVIOURS:
        time.sleep(60)


main()
