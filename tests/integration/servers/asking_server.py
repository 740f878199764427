"""A stdio MCP server of 2025-11-25 whose tools ask the client: confirm (elicitation/create) and complete
(sampling/createMessage). Each answers {declared, answer or error}: what the client declared at the start, and
what came back. Python's standard library only."""

import json
import queue
import sys
import threading

QUESTIONS = {
    "confirm": ("elicitation/create", {"mode": "form", "message": "Delete it all?", "requestedSchema": {
        "type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}}),
    "complete": ("sampling/createMessage", {"maxTokens": 9, "messages": [
        {"role": "user", "content": {"type": "text", "text": "The capital of France?"}}]}),
}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in QUESTIONS]
write_lock = threading.Lock()
waiting = {}
declared = {}


def write(message):
    with write_lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(identifier, name):
    """Asks, waits for the answer and passes it on; on a thread of its own, as calls overlap."""
    method, params = QUESTIONS[name]
    number = f"question-{identifier}"
    waiting[number] = queue.Queue()
    write({"id": number, "method": method, "params": params})
    reply = waiting[number].get()
    del waiting[number]
    result = {"declared": declared, **{key: reply[key] for key in ("result", "error") if key in reply}}
    write({"id": identifier, "result": {"content": [{"type": "text", "text": json.dumps(result)}],
                                        "structuredContent": result}})


def take(message):
    method, identifier, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        waiting[identifier].put(message)
    elif method == "initialize":
        declared.update(params["capabilities"])
        write({"id": identifier, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                            "serverInfo": {"name": "asking", "version": "1"}}})
    elif method == "tools/list":
        write({"id": identifier, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(identifier, params["name"]), daemon=True).start()
    elif identifier is not None:
        write({"id": identifier, "error": {"code": -32601, "message": "Method not found"}})


for line in sys.stdin:
    take(json.loads(line))
