"""Tool calls in flight: overlap, limits, cancelling, and the end of their run."""
import json
import unittest

from fake_host import GuestTest, Later, NoAnswer, Together, echo, text_result


class Overlap(GuestTest):
    def together(self, payload):
        return Together(4, text_result(json.dumps(payload["arguments"])))

    def test_calls_overlap(self):
        for name, code in (
                ("gather", "await asyncio.gather(*[mcp_files.t(n=n) for n in range(4)])"),
                ("tasks", "tasks = [asyncio.create_task(mcp_files.t(n=n)) for n in range(4)]\n"
                          "[await task for task in tasks]"),
                ("to_thread", "await asyncio.gather(*[asyncio.to_thread(mcp_files.t, n=n)"
                              " for n in range(4)])"),
                ("run", "async def main():\n"
                        "    return await asyncio.gather(*[mcp_files.t(n=n) for n in range(4)])\n"
                        "asyncio.run(main())"),
                ("threads", "from concurrent.futures import ThreadPoolExecutor as P\n"
                            "with P(4) as pool: found = list(pool.map(lambda n: mcp_files.t(n=n),"
                            " range(4)))\nfound")):
            with self.subTest(name):
                run = self.run_code("import asyncio\n" + code, self.together)
                self.assert_ok(run)
                self.assertEqual(run.value, ['{"n": %d}' % n for n in range(4)])

    def test_no_more_in_flight_than_allowed(self):
        in_flight = []
        most = []

        class Counted(Later):
            def __init__(self):
                in_flight.append(1)
                most.append(len(in_flight))
                super().__init__(0.01, text_result("x"))

        def handler(payload):
            return Counted()
        host = self.host(handler, limits={"callsInFlight": 3})
        send = host.send

        def counting_send(frame):
            if frame["type"] == "rpc_response":
                in_flight.pop()
            send(frame)
        host.send = counting_send
        run = host.run("""
            import asyncio, threading
            found = []
            threads = [threading.Thread(target=lambda: found.append(mcp_files.t()))
                       for _ in range(5)]
            for thread in threads: thread.start()
            print(len(await asyncio.gather(*[mcp_files.t(n=n) for n in range(20)])))
            for thread in threads: thread.join()
            len(found)
            """)
        self.assertEqual((run.stdout, run.value, len(run.requests)), ("20\n", 5, 25))
        self.assertEqual(max(most), 3)
        ids = [frame["id"] for frame in run.frames if frame["type"] == "rpc_request"]
        self.assertEqual(ids, list(range(1, 26)))

    def test_cancelling_a_waiting_call(self):
        run = self.run_code("""
            import asyncio
            try:
                await asyncio.wait_for(mcp_files.never(), 0.05)
            except asyncio.TimeoutError:
                print("timeout")
            task = asyncio.create_task(mcp_files.never())
            await asyncio.sleep(0.01)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")
            waiting = [asyncio.create_task(mcp_files.never(n=n)) for n in range(3)]
            await asyncio.sleep(0.01)
            for task in waiting: task.cancel()
            print(await asyncio.wait_for(mcp_files.quick(), 60))
            """, lambda payload: NoAnswer if payload["tool"] == "never" else text_result("quick"),
            limits={"callsInFlight": 6})
        self.assert_ok(run)
        self.assertEqual(run.stdout, "timeout\ncancelled\nquick\n")
        # Each of them that was sent at all, and no other.
        self.assertEqual(run.cancelled, [request for request in run.requests if request["tool"] == "never"])

    def test_a_cancelled_call_frees_its_place(self):
        run = self.run_code("""
            import asyncio
            for n in range(3):
                task = asyncio.create_task(mcp_files.never(n=n))
                await asyncio.sleep(0)
                await mcp_files.quick()  # Sent after it.
                task.cancel()
            await asyncio.gather(mcp_files.quick(), mcp_files.quick())
            """, lambda payload: NoAnswer if payload["tool"] == "never" else text_result("quick"),
            limits={"callsInFlight": 2})
        self.assert_ok(run)
        self.assertEqual([request["tool"] for request in run.cancelled], ["never"] * 3)

    def test_an_interrupted_call_is_cancelled(self):
        """A call of plain code, whose answer a lock waits for."""
        def handler(payload):
            if payload["tool"] == "never":
                host.send({"type": "cancel", "id": "run-1"})
                return NoAnswer
            return text_result("goes on")
        host = self.host(handler)
        run = host.run("""
            try:
                mcp_files.never()
            except KeyboardInterrupt:
                print(mcp_files.quick())
            """)
        self.assertEqual(run.stdout, "goes on\n")
        self.assertEqual([request["tool"] for request in run.cancelled], ["never"])

    def test_the_last_awaits_of_a_loop_are_cancelled(self):
        run = self.run_code("""
            import asyncio
            async def main():
                asyncio.ensure_future(mcp_files.never())
                await asyncio.sleep(0)
                await mcp_files.quick()  # Sent after it.
            asyncio.run(main())
            mcp_files.quick()
            """, lambda payload: NoAnswer if payload["tool"] == "never" else text_result("quick"))
        self.assert_ok(run)
        self.assertEqual([request["tool"] for request in run.cancelled], ["never"])

    def test_calls_that_wait_and_are_cancelled_are_never_sent(self):
        run = self.run_code("""
            import asyncio
            first = asyncio.create_task(mcp_files.slow())
            await asyncio.sleep(0.01)
            second = asyncio.create_task(mcp_files.second())
            await asyncio.sleep(0.01)
            second.cancel()
            await first
            await mcp_files.third()
            """, lambda payload: Later(0.05, text_result("")), limits={"callsInFlight": 1})
        self.assertEqual([request["tool"] for request in run.requests], ["slow", "third"])

    def test_answers_in_any_order_and_unknown_ones(self):
        host = self.host(lambda payload: Later(0.05 * payload["arguments"]["n"],
                                               text_result(str(payload["arguments"]["n"]))))
        host.send({"type": "rpc_response", "id": 99, "success": True, "payload": None})
        run = host.run("import asyncio\n"
                       "await asyncio.gather(*[mcp_files.t(n=n) for n in (3, 1, 2)])")
        self.assertEqual(run.value, ["3", "1", "2"])

    def test_quick_enough(self):
        host = self.host()
        run = host.run("""
            import asyncio, time
            start = time.perf_counter()
            await asyncio.gather(*[mcp_files.t(n=n) for n in range(1000)])
            time.perf_counter() - start
            """)
        self.assertLess(run.value, 20)

    def test_blocking_calls_inside_a_loop(self):
        run = self.run_code("""
            from mcp.runtime import call_tool_sync
            import asyncio
            async def main():
                return call_tool_sync("files", "read", {"a": 1})
            await main()
            """, echo)
        self.assertEqual(run.value["arguments"], {"a": 1})


class Closed(GuestTest):
    def test_nothing_is_called_after_done(self):
        asked = []

        def handler(payload):
            asked.append(payload["tool"])
            if payload["tool"] == "never":
                return NoAnswer
            return text_result("yes" if "never" in asked else "")
        host = self.host(handler)
        run = host.run("""
            import threading
            from mcp.runtime import MCPError
            errors = []
            go_on = threading.Event()
            def waits():
                try: mcp_files.never()
                except MCPError as error: errors.append(error.code)
            def calls_later():
                go_on.wait()
                try: mcp_files.late()
                except MCPError as error: errors.append(error.code)
            threads = [threading.Thread(target=target, daemon=True)
                       for target in (waits, calls_later)]
            for thread in threads: thread.start()
            while not mcp_files.was_never_called(): pass
            """)
        self.assertEqual(run.exit_code, 0)
        number = [frame["id"] for frame in run.frames if frame.get("payload", {}).get("tool")
                  == "never"][0]
        host.send({"type": "rpc_response", "id": number, "success": True,
                   "payload": text_result("too late")})
        self.assertNotIn("late", asked)
        run = host.run("threads[0].join(60)\ngo_on.set()\nthreads[1].join(60)\nerrors")
        self.assertEqual(run.value, ["closed"])
        self.assertEqual(asked[-1], "late")

    def test_a_surviving_thread_between_two_runs(self):
        host = self.host()
        host.run("""
            import threading, time
            from mcp.runtime import MCPError
            codes = []
            def call():
                try:
                    while True:
                        mcp_files.again()
                except MCPError as error:
                    codes.append(error.code)
            thread = threading.Thread(target=call, daemon=True)
            thread.start()
            mcp_files.once()
            """)
        with self.assertRaises(AssertionError):
            host.next_frame(timeout=0.1)
        self.assertEqual(host.run("thread.join(60)\ncodes").value, ["closed"])


if __name__ == "__main__":
    unittest.main()
