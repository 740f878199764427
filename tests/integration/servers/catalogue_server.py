"""A stdio MCP server whose tools, as a tools/list result has them, stand in the JSON file that it gets as its argument.
They do nothing but tell their name. With STARTS set it appends its own name to that file when it starts. Python's
standard library only."""

import json
import os
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    CATALOGUE = json.load(file)


def result_of(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": CATALOGUE["name"], "version": CATALOGUE.get("version", "1.0")}}
    if method == "tools/list":
        return {"tools": CATALOGUE["tools"]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["name"]}]}
    return None


if os.environ.get("STARTS"):
    with open(os.environ["STARTS"], "a", encoding="utf-8") as file:
        file.write(CATALOGUE["name"] + "\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = result_of(message["method"], message.get("params", {}))
    answer = ({"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
