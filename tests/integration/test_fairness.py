"""What one run asks for isn't waited for by the others, and what it leaves unread isn't held without end."""

import time
import unittest
import statistics

from host import patience, read, wait_until
from stdio_client import status_field
from world import BulkheadTest

MEBIBYTE = 1 << 20
# As limits::memory_budget and limits::run_memory; the slack is for copies on their way and the program itself.
MEMORY_BUDGET = 256 * MEBIBYTE
RUN_MEMORY = 64 * MEBIBYTE
SLACK = 64 * MEBIBYTE

# The calls of the tool tell that the run goes on.
FLOOD = """
import asyncio
from mcp import runtime

async def flood(make):
    while True:
        try: await make()
        except runtime.MCPError: pass

async def show():
    while True: await asyncio.gather(mcp_many.echo(), asyncio.sleep(0.1))

makers = [MAKERS]
await asyncio.gather(show(), *[flood(make) for make in makers for _ in range(28 // len(makers))])
"""
CHEAP = "lambda: runtime.list_servers()"
DEAR = ("lambda: runtime.search_tool_docs('number of the tool 77', limit=50), "
        "lambda: runtime.query_tool_docs('many', 'tool_nunber'), "
        "lambda: runtime.call_tool('many', 'a_tool_that_is_not_there_but_has_a_long_name'), "
        "lambda: runtime.query_tool_docs('nowhere' * 30, 'tool')")

# Asks for results, then keeps its process from reading them: the pattern holds Python's lock.
UNREAD = """
import asyncio, re
async def main():
    tasks = [asyncio.create_task(mcp_odd.blob(size=SIZE)) for _ in range(32)]
    await asyncio.sleep(0)
    await mcp_odd.echo(message="all are sent")
    re.match(r"(a+)+$", "a" * 60 + "b")
await main()
"""


class Fairness(BulkheadTest):
    @staticmethod
    def servers(world):
        return {"many": world.odd_server("many-tools=5000", env={"CALLS": world.path("many.calls")})}

    def ping_seconds(self):
        begun = time.monotonic()
        self.client.request("ping").result(patience(60))
        return time.monotonic() - begun

    def calls(self):
        return len(read(self.world.path("many.calls")))

    def stopped(self):
        before = self.calls()
        time.sleep(1)
        return self.calls() == before

    def pings_during(self, makers):
        """The median time of a ping while a run floods the host with calls."""
        before = self.calls()
        run = self.start(FLOOD.replace("MAKERS", makers), ["many"], timeout=100)
        wait_until(lambda: self.calls() > before + 20, 60, "the run floods")
        times = []
        for _ in range(40):
            times.append(self.ping_seconds())
            time.sleep(0.02)
        self.client.cancel(run)
        wait_until(self.stopped, 10, "the cancelled run makes no more calls")
        return statistics.median(times)

    def test_searches_of_one_run_do_not_keep_others_waiting(self):
        """A ping takes about as long as while as many calls come that cost nothing."""
        self.run_well("print(len(dir(mcp_many)))", ["many"])
        cheap = self.pings_during(CHEAP)
        dear = self.pings_during(DEAR)
        self.assertLess(dear, 20 * cheap + 0.005, f"with cheap calls {cheap * 1000:.1f} ms")
        self.assert_still_serves()
        self.assert_nothing_left()

    def test_searches_are_answered_in_order_and_whole(self):
        answer = self.run_well("""
            import asyncio
            from mcp import runtime
            done = []
            async def ask(n):
                found = await runtime.search_tool_docs("tool_%04d" % n, limit=1)
                done.append(n)
                return found[0]["tool"] == "tool_%04d" % n
            print(all(await asyncio.gather(*[ask(n) for n in range(100)])), done == sorted(done))
            print(len(runtime.list_tools_sync("many")), len(runtime.query_tool_docs_sync("many")))
            """, ["many"])
        self.assertEqual(answer["stdout"], "True True\n5013 5013\n")


class Results(BulkheadTest):
    @staticmethod
    def servers(world):
        return {"odd": world.odd_server()}

    def resident(self, field):
        return int(status_field(self.client.pid, field).split()[0]) * 1024

    def test_unread_results_are_bounded(self):
        self.run_well("print(await mcp_odd.echo(message='warm'))", ["odd"])
        base = self.resident("VmRSS")
        for count, bound in ((1, 2 * RUN_MEMORY), (8, MEMORY_BUDGET)):
            runs = [self.start(UNREAD.replace("SIZE", str(15 * MEBIBYTE)), ["odd"], timeout=20)
                    for _ in range(count)]
            for run in runs:
                self.assertNotEqual(self.answer(run)["status"], "success")
            high = self.resident("VmHWM")
            self.assertLess(high - base, bound + SLACK, f"{count} runs: {(high - base) >> 20} MiB more")
        self.assert_still_serves()
        self.assert_nothing_left()

    def test_results_that_are_read_need_no_room(self):
        """More than a run may leave unread, one after the other and several at once."""
        answer = self.run_well("""
            import asyncio
            for _ in range(12): assert len(await mcp_odd.blob(size=12_000_000)) == 12_000_000
            for _ in range(4):
                parts = await asyncio.gather(*[mcp_odd.blob(size=1_500_000) for _ in range(32)])
                assert {len(part) for part in parts} == {1_500_000}
            print("read")
            """, ["odd"], timeout=100)
        self.assertEqual(answer["stdout"], "read\n")


if __name__ == "__main__":
    unittest.main()
