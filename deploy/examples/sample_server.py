#!/usr/bin/env python3
"""A small MCP server over stdio: the orders, products and customers of a shop. Standard library only.

It is of the kind most servers still are: it answers `initialize`, knows nothing of `server/discover`, gives
its list of tools in pages, and takes some time for each call, as if a database stood behind it.
"""

import json
import random
import sys
import threading
import time

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
TOOLS_PER_PAGE = 2
SECONDS_PER_CALL = 0.05
MAX_PAGE_SIZE = 50

PRODUCTS = {
    "TEA-001": ("Green tea, 250 g", 890, 140),
    "TEA-002": ("Black tea, 500 g", 1240, 61),
    "COF-001": ("Espresso beans, 1 kg", 2190, 18),
    "COF-002": ("Filter coffee, 500 g", 1150, 230),
    "CUP-001": ("Porcelain cup", 1450, 75),
    "POT-001": ("Cast-iron teapot", 6900, 9),
    "GRD-001": ("Hand grinder", 5400, 12),
    "FLT-001": ("Paper filters, 100", 420, 800),
}
CUSTOMERS = {
    f"C{i:03d}": (name, city)
    for i, (name, city) in enumerate(
        [
            ("Aalto & Sons", "Helsinki"),
            ("Bistro Lumière", "Lyon"),
            ("Café Zentral", "Wien"),
            ("Delft Roasters", "Delft"),
            ("Edinburgh Tea Rooms", "Edinburgh"),
            ("Fjord Kaffe", "Bergen"),
            ("Gelateria Sole", "Napoli"),
        ],
        1,
    )
}


def make_orders():
    """The same 120 orders every time."""
    dice = random.Random(20251)
    orders = []
    for number in range(1, 121):
        lines = [
            {"sku": sku, "quantity": dice.randint(1, 12)} for sku in dice.sample(sorted(PRODUCTS), dice.randint(1, 4))
        ]
        orders.append(
            {
                "id": f"O{number:05d}",
                "customer": dice.choice(sorted(CUSTOMERS)),
                "date": f"2025-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}",
                "status": dice.choices(("delivered", "open", "cancelled"), (80, 14, 6))[0],
                "lines": lines,
            }
        )
    return orders


ORDERS = make_orders()


class ToolError(Exception):
    """What the caller of a tool got wrong, in words for that caller."""


def list_orders(page=1, page_size=25, status=None):
    if page < 1 or not 1 <= page_size <= MAX_PAGE_SIZE:
        raise ToolError(f"page starts at 1, and page_size is 1 to {MAX_PAGE_SIZE}")
    chosen = [o for o in ORDERS if status is None or o["status"] == status]
    start = (page - 1) * page_size
    result = {"orders": chosen[start : start + page_size], "total": len(chosen)}
    if start + page_size < len(chosen):
        result["nextPage"] = page + 1
    return result


def get_product(sku):
    if sku not in PRODUCTS:
        raise ToolError(f"there is no product {sku!r}; the SKUs are {', '.join(sorted(PRODUCTS))}")
    name, cents, stock = PRODUCTS[sku]
    return {"sku": sku, "name": name, "priceCents": cents, "stock": stock}


def get_customer(customer_id):
    if customer_id not in CUSTOMERS:
        raise ToolError(f"there is no customer {customer_id!r}")
    name, city = CUSTOMERS[customer_id]
    return {"id": customer_id, "name": name, "city": city}


def search_products(text):
    words = text.lower().split()
    return {"skus": [sku for sku, (name, _, _) in PRODUCTS.items() if all(w in name.lower() for w in words)]}


def tool(function, description, properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return function, {
        "name": function.__name__,
        "description": description,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


TOOLS = [
    tool(
        list_orders,
        "Orders, oldest number first, in pages; nextPage is there as long as more follow.",
        {
            "page": {"type": "integer", "minimum": 1, "default": 1},
            "page_size": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": 25},
            "status": {"type": "string", "enum": ["open", "delivered", "cancelled"]},
        },
    ),
    tool(get_product, "Name, price in cents and stock of a product.", {"sku": {"type": "string"}}, ["sku"]),
    tool(get_customer, "Name and city of a customer.", {"customer_id": {"type": "string"}}, ["customer_id"]),
    tool(search_products, "SKUs whose name holds every word.", {"text": {"type": "string"}}, ["text"]),
]
BY_NAME = {description["name"]: function for function, description in TOOLS}


class RequestError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def initialize(parameters):
    asked = parameters.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bulkhead-sample", "title": "Sample shop", "version": "1.0.0"},
        "instructions": "A made-up shop: page through the orders, look up products and customers.",
    }


def list_tools(parameters):
    cursor = parameters.get("cursor", "0")
    if not (isinstance(cursor, str) and cursor.isdigit() and int(cursor) < len(TOOLS)):
        raise RequestError(-32602, f"bad cursor {cursor!r}")
    start = int(cursor)
    result = {"tools": [description for _, description in TOOLS[start : start + TOOLS_PER_PAGE]]}
    if start + TOOLS_PER_PAGE < len(TOOLS):
        result["nextCursor"] = str(start + TOOLS_PER_PAGE)
    return result


def call_tool(parameters):
    name = parameters.get("name")
    if name not in BY_NAME:
        raise RequestError(-32602, f"there is no tool {name!r}")
    time.sleep(SECONDS_PER_CALL)
    try:
        result = BY_NAME[name](**(parameters.get("arguments") or {}))
    except (ToolError, TypeError) as e:
        return {"content": [{"type": "text", "text": str(e)}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}


METHODS = {"initialize": initialize, "tools/list": list_tools, "tools/call": call_tool, "ping": lambda parameters: {}}
writing = threading.Lock()


def send(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(request):
    try:
        method = METHODS.get(request["method"])
        if method is None:
            raise RequestError(-32601, f"method not found: {request['method']}")
        send({"id": request["id"], "result": method(request.get("params") or {})})
    except RequestError as e:
        send({"id": request["id"], "error": {"code": e.code, "message": str(e)}})


def main():
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            request = json.loads(line)
        except ValueError:
            send({"id": None, "error": {"code": -32700, "message": "not JSON"}})
            continue
        if not isinstance(request, dict) or "method" not in request or "id" not in request:
            continue  # notifications, among them cancellations: every call here is short
        if request["method"] == "tools/call":
            threading.Thread(target=answer, args=(request,), daemon=True).start()
        else:
            answer(request)


if __name__ == "__main__":
    main()
