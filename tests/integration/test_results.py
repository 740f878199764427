"""The last expression's value, whatever it is: an answer is always whole, valid and small."""

import json
import unittest

from host import patience
from world import POOLED, BulkheadTest

ODD = {
    "cyclic": "ring = {'a': [1]}; ring['a'].append(ring); ring",
    "huge": "'v' * 50_000_000",
    "a huge list": "list(range(1_000_000))",
    "a huge number": "10 ** 4000",
    "unserialisable": "object()",
    "a function": "lambda: 1",
    "a generator": "(x for x in range(3))",
    "bytes": "b'\\xff' * 100_000",
    "a set": "{1, 2}",
    "not a number": "float('nan')",
    "infinite": "[float('inf')]",
    "a lone surrogate": "'\\ud800'",
    "deep": "x = []\nfor _ in range(900): x = [x]\nx",
    "keys that are no strings": "{1: 2, None: 3, (4, 5): 6}",
    "a repr that raises": "class C:\n    def __repr__(self): raise ValueError('no')\nC()",
    "a repr that is no string": "class C:\n    def __repr__(self): return 7\nC()",
    "escapes": "'\\x1b[2J' * 5000",
}


class Results(BulkheadTest):
    variables = POOLED

    def test_no_value_turns_success_into_failure(self):
        replies = {name: self.start(code) for name, code in ODD.items()}
        for name, reply in replies.items():
            with self.subTest(name):
                result = reply.result(patience(120))
                answer = result["structuredContent"]
                self.assert_success(answer)
                self.assertFalse(result["isError"])
                self.assertIn("result", answer)
                self.assertLess(len(json.dumps(answer, ensure_ascii=False).encode()), 40_000)

    def test_no_value_is_cut_within(self):
        """A value comes whole, or as a text that says how much is left out; never as half of a JSON text."""
        for count in (10, 500, 1000, 2000, 4000, 8000, 20_000):
            with self.subTest(count):
                answer = self.run_well(f"[{{'number': n, 'name': 'é' * 3}} for n in range({count})]")
                whole = [{"number": number, "name": "ééé"} for number in range(count)]
                if isinstance(answer["result"], str):
                    self.assertIn("left out", answer["result"])
                    self.assertGreater(count, 100)
                else:
                    self.assertEqual(answer["result"], whole)


class Calls(BulkheadTest):
    variables = POOLED

    @staticmethod
    def servers(world):
        return {"recorder": world.recorder("calls")}

    def test_the_calls_are_no_part_of_the_answer(self):
        reply = self.start("""
            for number in range(200):
                await mcp_recorder.echo(message="m" * 1000)
            print("done")
            """, servers=["recorder"])
        result = reply.result(patience(90))
        self.assertEqual(result["content"], [{"type": "text", "text": "done\n"}])
        self.assertEqual(set(result["structuredContent"]),
                         {"status", "exitCode", "stdout", "servers", "durationMs"})


if __name__ == "__main__":
    unittest.main()
