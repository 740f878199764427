#!/usr/bin/env python3
"""A small stdio MCP server for tests and the bench. Tools: echo, add, blob(size), slow(seconds), fail, exit.
With RECORD set, appends one line for each tool call to that file, so that a test can see which calls
came through."""

import json
import os
import sys
import threading
import time

RECORD = os.environ.get("RECORD")
TOOLS = {
    "echo": {"message": "string"},
    "add": {"a": "number", "b": "number"},
    "blob": {"size": "integer"},
    "slow": {"seconds": "number"},
    "fail": {"message": "string"},
    "exit": {"code": "integer"},
}
write_lock = threading.Lock()


def send(message):
    with write_lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def text(value, error=False):
    return {"content": [{"type": "text", "text": str(value)}], "isError": error}


def call(name, arguments):
    if RECORD:
        with open(RECORD, "a", encoding="utf-8") as record:
            short = {key: value if len(str(value)) < 1000 else "…" for key, value in arguments.items()}
            record.write(json.dumps({"tool": name, "arguments": short}) + "\n")
    if name == "echo":
        return text(arguments.get("message", ""))
    if name == "add":
        return text(arguments.get("a", 0) + arguments.get("b", 0))
    if name == "blob":
        return text("x" * int(arguments.get("size", 0)))
    if name == "slow":
        time.sleep(float(arguments.get("seconds", 0)))
        return text("done")
    if name == "fail":
        return text(arguments.get("message", "failed"), True)
    if name == "exit":
        os._exit(int(arguments.get("code", 1)))
    return text(f"unknown tool: {name}", True)


def answer(message):
    identifier, method, params = message["id"], message.get("method"), message.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                  "serverInfo": {"name": "recorder", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "description": f"The {name} tool",
                             "inputSchema": {"type": "object",
                                             "properties": {key: {"type": kind}
                                                            for key, kind in arguments.items()}}}
                            for name, arguments in TOOLS.items()]}
    elif method == "tools/call":
        result = call(params.get("name"), params.get("arguments") or {})
    elif method == "ping":
        result = {}
    else:
        send({"jsonrpc": "2.0", "id": identifier,
              "error": {"code": -32601, "message": "method not found"}})
        return
    send({"jsonrpc": "2.0", "id": identifier, "result": result})


for line in sys.stdin:
    if not line.strip():
        continue
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    if (request.get("params") or {}).get("name") == "slow":
        threading.Thread(target=answer, args=(request,), daemon=True).start()
    else:
        answer(request)
