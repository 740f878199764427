"""Runs inside the sandbox: finds a server's tools, calls them many times, and gives back a small table.

An agent would need dozens of turns for this, and every order would pass through its context.
"""

import asyncio
import time
from collections import Counter

from mcp import runtime

PAGE_SIZE = 20


async def all_orders():
    """The first page says how many there are; the others come all at once."""
    first = await mcp_sample.list_orders(page=1, page_size=PAGE_SIZE)
    pages = -(-first["total"] // PAGE_SIZE)
    rest = await asyncio.gather(*(mcp_sample.list_orders(page=p, page_size=PAGE_SIZE) for p in range(2, pages + 1)))
    return [order for page in (first, *rest) for order in page["orders"]]


async def look_up(call, keys):
    keys = sorted(keys)
    return dict(zip(keys, await asyncio.gather(*(call(k) for k in keys))))


print("servers:", ", ".join(runtime.discovered_servers()))
found = await runtime.search_tool_docs("orders in pages", limit=2)
print("tools for 'orders in pages':", ", ".join(t["tool"] for t in found))

started = time.monotonic()
orders = [o for o in await all_orders() if o["status"] != "cancelled"]
products = await look_up(lambda k: mcp_sample.get_product(sku=k), {l["sku"] for o in orders for l in o["lines"]})
customers = await look_up(lambda k: mcp_sample.get_customer(customer_id=k), {o["customer"] for o in orders})
seconds = time.monotonic() - started

turnover = Counter()
wanted = Counter()
for order in orders:
    for line in order["lines"]:
        turnover[order["customer"]] += line["quantity"] * products[line["sku"]]["priceCents"]
        if order["status"] == "open":
            wanted[line["sku"]] += line["quantity"]

print(f"\n{'customer':<22}{'city':<12}{'turnover':>12}")
for key, cents in turnover.most_common():
    print(f"{customers[key]['name']:<22}{customers[key]['city']:<12}{cents / 100:>12,.2f}")

short = {sku: n - products[sku]["stock"] for sku, n in wanted.items() if n > products[sku]["stock"]}
print("\nto be ordered for open orders:", ", ".join(f"{n} × {products[s]['name']}" for s, n in short.items()) or "nothing")
print(f"{len(orders)} orders, {len(products)} products, {len(customers)} customers read in {seconds:.2f} s")

{"orders": len(orders), "turnover": sum(turnover.values()) / 100, "short": short}
