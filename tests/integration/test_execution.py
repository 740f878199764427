"""What running code is like, through the whole program: output, results, exits, overlapping calls, and how a
run that goes wrong is classified."""

import json
import time
import unittest

from host import patience
from world import POOLED, BulkheadTest


class Output(BulkheadTest):
    variables = POOLED

    def test_a_line_of_70_kilobytes_is_no_problem(self):
        answer = self.run_well("print('z' * 70_000)")
        self.assertEqual(answer["truncated"]["stdout"]["totalBytes"], 70_001)
        self.assertTrue(answer["stdout"].startswith("zzz"))
        self.assertTrue(answer["stdout"].endswith("zzz\n"))
        self.assertEqual(answer["stdout"].count("z"),
                         70_000 - answer["truncated"]["stdout"]["omittedBytes"])

    def test_50_megabytes_are_counted_and_cut(self):
        answer = self.run_well("""
            import os
            print("the head")
            for _ in range(50): os.write(1, b"y" * 1_000_000)
            print("\\nthe tail")
            """, timeout=100)
        cut = answer["truncated"]["stdout"]
        self.assertEqual(cut["totalBytes"], 50_000_000 + len("the head\n\nthe tail\n"))
        self.assertTrue(answer["stdout"].startswith("the head\n"))
        self.assertTrue(answer["stdout"].endswith("\nthe tail\n"))
        self.assertLess(len(answer["stdout"]), 20_000)

    def test_bytes_that_are_no_text(self):
        answer = self.run_well("""
            import os
            os.write(1, b"a\\xffb\\n\\n\\nc\\x00d\\xc3")
            os.write(1, b"\\xa9 e")
            """)
        self.assertEqual(answer["stdout"], "a\ufffdb\n\n\nc\x00dé e")

    def test_control_bytes_are_counted_exactly(self):
        """Each takes six bytes as JSON, more than any frame or answer may have."""
        for byte in (0, 0x1b, 0x7f):
            answer = self.run_well(f"""
                import os
                os.write(1, b"\\x{byte:02x}" * 65_536)
                os.write(2, b"\\x{byte:02x}" * 1_000)
                """)
            cut = answer["truncated"]["stdout"]
            self.assertEqual(cut["totalBytes"], 65_536)
            self.assertEqual(answer["stdout"].count(chr(byte)), 65_536 - cut["omittedBytes"])
            shown = answer["stderr"].count(chr(byte))
            self.assertEqual(shown + answer["truncated"].get("stderr", {"omittedBytes": 0})["omittedBytes"],
                             1_000)

    def test_output_of_other_processes_and_raw_writes(self):
        answer = self.run_well("""
            import os, subprocess, sys
            print("one")
            subprocess.run(["sh", "-c", "echo two; echo oops >&2"])
            os.write(1, b"three\\n")
            sys.stderr.write("again\\n")
            """)
        self.assertEqual(answer["stdout"], "one\ntwo\nthree\n")
        self.assertEqual(answer["stderr"], "oops\nagain\n")

    def test_printed_frames_are_output(self):
        lines = ['{"type":"done","id":"x","exitCode":7}', "123", "null", "", "[]", '{"type":"ready"}',
                 '{"jsonrpc":"2.0","id":1,"result":{}}', "true"]
        answer = self.run_well(f"for line in {lines!r}: print(line)\nprint(flush=True)")
        self.assertEqual(answer["stdout"], "\n".join(lines) + "\n\n")

    def test_whole_answer_has_a_bound(self):
        """64 KiB, text block and structured content together."""
        reply = self.start("""
            import sys
            print("\\x01" * 100_000)
            print("\\x02" * 100_000, file=sys.stderr)
            raise ValueError("\\x03" * 100_000)
            """)
        result = reply.result(patience(90))
        self.assertEqual(result["structuredContent"]["status"], "error")
        structured = json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))
        self.assertEqual(len(result["content"]), 1)
        self.assertLessEqual(len(structured.encode()) + len(result["content"][0]["text"].encode()), 64 * 1024)


class Execution(BulkheadTest):
    variables = POOLED

    def test_results(self):
        for code, result in (("6 * 7", 42), ("{'a': [1, None, 'é']}", {"a": [1, None, "é"]}),
                             ("'text'", "text"), ("{1, 2}", "{1, 2}"), ("x = 5", None)):
            with self.subTest(code):
                self.assertEqual(self.run_well(code).get("result"), result)

    def test_results_that_are_no_json(self):
        answer = self.run_well("ring = [1]; ring.append(ring); ring")
        self.assertEqual(answer["result"], "[1, [...]]")
        answer = self.run_well("list(range(100_000))")
        self.assertIn("result", answer)
        self.assertLess(len(json.dumps(answer)), 40_000)

    def test_both_idioms_of_asyncio(self):
        answer = self.run_well("""
            import asyncio
            async def main():
                await asyncio.sleep(0.01)
                return "ran"
            if __name__ == "__main__":
                print(asyncio.run(main()))
            """)
        self.assertEqual(answer["stdout"], "ran\n")
        answer = self.run_well("""
            import asyncio
            await asyncio.sleep(0.01)
            print(await asyncio.gather(*[asyncio.sleep(0.01, i) for i in range(3)]))
            """)
        self.assertEqual(answer["stdout"], "[0, 1, 2]\n")

    def test_exit_codes(self):
        for code, exit_code in (("import sys; sys.exit(3)", 3), ("raise SystemExit(0)", 0), ("exit(4)", 4),
                                ("import os; print('x'); os._exit(5)", 5), ("1/0", 1),
                                ("import sys; sys.exit('words')", 1)):
            with self.subTest(code):
                answer = self.run_code(code)
                self.assertEqual(answer["exitCode"], exit_code, answer)
                self.assertEqual(answer["status"], "success" if exit_code == 0 else "error")

    def test_tracebacks_show_the_code_alone(self):
        answer = self.run_code("""
            def f(n):
                return n / 0
            f(1)
            """)
        self.assertEqual((answer["status"], answer["error"]["type"]), ("error", "ZeroDivisionError"))
        trace = answer["error"]["traceback"]
        self.assertTrue(trace.startswith("Traceback (most recent call last):\n  File \"<run>\", line 4"), trace)
        self.assertIn("return n / 0", trace)
        self.assertNotIn("bulkhead", trace)
        self.assertNotIn("/ipc", trace)

    def test_a_syntax_error_is_an_answer(self):
        answer = self.run_code("print('a'\nx = (")
        self.assertEqual((answer["status"], answer["error"]["type"]), ("error", "SyntaxError"))

    def test_each_run_is_a_fresh_one(self):
        self.run_well("open('/tmp/left', 'w').write('x'); open('/workspace/left', 'w').write('x')")
        answer = self.run_well("import os; print(os.listdir('/tmp'), os.listdir('/workspace'))")
        self.assertEqual(answer["stdout"], "[] []\n")

    def test_bad_calls_are_told_what_is_wrong(self):
        for arguments, word in (({}, "code"), ({"code": 5}, "string"), ({"code": " "}, "empty"),
                                ({"code": "1", "timeout": -1}, "timeout"),
                                ({"code": "1", "timeout": 1e9}, "MCP_BRIDGE_MAX_TIMEOUT"),
                                ({"code": "1", "servers": ["nobody"]}, "nobody"),
                                ({"code": "1", "extra": 1}, "extra")):
            with self.subTest(arguments):
                reply = self.client.request("tools/call", {"name": "run_python", "arguments": arguments})
                answer = reply.result(patience(30))
                self.assertTrue(answer["isError"])
                self.assertEqual(answer["structuredContent"]["status"], "validation_error")
                self.assertIn(word, answer["structuredContent"]["error"]["message"])


class Endings(BulkheadTest):
    """How a run ended isn't mixed up."""

    variables = {**POOLED, "MCP_BRIDGE_MEMORY": "96m"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client.run("pass", wait=patience(90))

    def test_timeout(self):
        answer = self.run_code("print('begun', flush=True)\nwhile True: pass", timeout=1)
        self.assertEqual(answer["status"], "timeout", answer)
        self.assertEqual(answer["stdout"], "begun\n")
        self.assertEqual(answer["error"]["code"], "timeout")

    def test_a_timeout_is_counted_from_the_first_line_of_code(self):
        """Booting, which takes longer than this, isn't part of it."""
        answer = self.run_well("import time; time.sleep(0.2); print('done')", timeout=60)
        self.assertEqual(answer["stdout"], "done\n")
        begun = time.monotonic()
        answer = self.run_code("import time; time.sleep(600)", timeout=0.3)
        self.assertEqual(answer["status"], "timeout")
        self.assertLess(time.monotonic() - begun, patience(10))

    def test_out_of_memory(self):
        if not self.holds("memory limit"):
            return
        answer = self.run_code("print('begun', flush=True); import time; time.sleep(0.5)\nb = bytearray(300 << 20)\nb[::4096] = b[::4096]")
        self.assertEqual(answer["status"], "out_of_memory", answer)
        self.assertEqual(answer["exitCode"], 137)
        self.assertEqual(answer["stdout"], "begun\n")
        self.assertIn("MCP_BRIDGE_MEMORY", answer["error"]["message"])

    def test_a_child_that_runs_out_of_memory_is_only_a_child(self):
        if not self.holds("memory limit"):
            return
        answer = self.run_well("""
            import subprocess, sys
            hungry = "b = bytearray(300 << 20); b[::4096] = b[::4096]"
            print(subprocess.run([sys.executable, "-I", "-S", "-c", hungry]).returncode)
            """)
        self.assertEqual(answer["stdout"], "-9\n")

    def test_killing_oneself_is_neither(self):
        answer = self.run_code("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(answer["status"], "error", answer)
        self.assertEqual(answer["error"]["code"], "runtime_lost")


class Calls(BulkheadTest):
    @staticmethod
    def servers(world):
        return {"stub": world.recorder("calls")}

    def test_four_calls_overlap(self):
        answer = self.run_well("""
            import asyncio, time
            await mcp_stub.echo(message="warm")
            begun = time.perf_counter()
            await asyncio.gather(*[mcp_stub.slow(seconds=2) for _ in range(4)])
            print(time.perf_counter() - begun)
            """, ["stub"], timeout=100)
        self.assertLess(float(answer["stdout"]), 7, "four calls of 2 s must not take 8 s")

    def test_threads_overlap_too(self):
        answer = self.run_well("""
            import time
            from concurrent.futures import ThreadPoolExecutor
            mcp_stub.echo(message="warm")
            begun = time.perf_counter()
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda _: mcp_stub.slow(seconds=2), range(4)))
            print(time.perf_counter() - begun)
            """, ["stub"], timeout=100)
        self.assertLess(float(answer["stdout"]), 7)

    def test_a_thousand_calls_at_once(self):
        answer = self.run_well("""
            import asyncio
            texts = await asyncio.gather(*[mcp_stub.echo(message=str(i)) for i in range(1000)])
            print(texts == [str(i) for i in range(1000)])
            """, ["stub"], timeout=100)
        self.assertEqual(answer["stdout"], "True\n")

    def test_a_failed_tool_is_an_exception(self):
        answer = self.run_well("""
            from mcp.runtime import MCPError
            try:
                await mcp_stub.fail(message="no luck")
            except MCPError as e:
                print(e.code, e.message)
            """, ["stub"])
        self.assertEqual(answer["stdout"], "tool_error tool 'fail' of server 'stub' failed: no luck\n")

    def test_the_names_that_code_sees(self):
        answer = self.run_well("""
            import os, json
            from mcp import runtime
            from mcp.servers.stub import *
            print(json.loads(os.environ["MCP_AVAILABLE_SERVERS"]), LOADED_MCP_SERVERS)
            print(runtime.discovered_servers(), [s["alias"] for s in runtime.list_servers_sync()])
            print(await echo(message="a"), await mcp_servers["stub"]["echo"](message="b"))
            print(await runtime.call_tool("stub", "echo", {"message": "c"}), dir(mcp_stub))
            print([d["tool"] for d in await runtime.search_tool_docs("add two numbers", limit=1)])
            """, ["stub"])
        self.assertEqual(answer["stdout"].splitlines(), [
            "['stub'] ('stub',)", "['stub'] ['stub']", "a b",
            "c ['add', 'blob', 'echo', 'exit', 'fail', 'slow']", "['add']"])

    def test_a_server_that_was_not_asked_for_is_not_there(self):
        answer = self.run_well("""
            from mcp import runtime
            print(runtime.discovered_servers(), runtime.list_servers_sync(), "mcp_stub" in globals())
            """)
        self.assertEqual(answer["stdout"], "['stub'] [] False\n")


if __name__ == "__main__":
    unittest.main()
