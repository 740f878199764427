"""A stdio MCP server whose tools are defined by a file, a JSON object of name to {description, annotations, …}, which
is read at each tools/list. RECORD gets a line of JSON for each call, STARTS the pid at the start. Python's
standard library only."""

import json
import os
import sys


def note(variable, text):
    if os.environ.get(variable):
        with open(os.environ[variable], "a", encoding="utf-8") as file:
            file.write(text + "\n")


def definitions():
    with open(sys.argv[1], encoding="utf-8") as file:
        return [{"name": name, "inputSchema": {"type": "object"}, **more} for name, more in json.load(file).items()]


def result_of(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "annotated", "version": "1"}}
    if method == "tools/list":
        return {"tools": definitions()}
    if method == "tools/call":
        note("RECORD", json.dumps({"tool": params["name"], "arguments": params.get("arguments")}))
        return {"content": [{"type": "text", "text": "did " + params["name"]}]}
    return {} if method == "ping" else None


note("STARTS", str(os.getpid()))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    result = result_of(message["method"], message.get("params") or {})
    if result is None:
        answer["error"] = {"code": -32601, "message": "method not found"}
    else:
        answer["result"] = result
    print(json.dumps(answer), flush=True)
