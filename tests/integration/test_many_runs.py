"""Many runs at once: containers are few, and nothing of them is left over."""

import threading

from host import patience, wait_until
from instances import containers_of, zombies_of
from world import BulkheadTest

# Children that nobody waits for: some are dead when the code ends, some orphans, some live on.
CARELESS = """
import os, subprocess, sys
for _ in range(3):
    subprocess.Popen(["true"])
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
print({number})
"""


class TenAgents(BulkheadTest):
    variables = {"MCP_BRIDGE_CONCURRENT_RUNS": "3", "MCP_BRIDGE_POOL": "1:2"}

    def test_containers_have_a_hard_cap_and_processes_are_reaped(self):
        """Ten clients that ask for six runs each, of which some are cancelled and some run out of time."""
        replies, most = {}, []
        over = threading.Event()

        def count():
            while not over.wait(0.2):
                most.append(len(containers_of(self.client.instance)))

        counting = threading.Thread(target=count)
        counting.start()
        try:
            for agent in range(10):
                for number in range(6):
                    kind = (agent + number) % 6
                    code = CARELESS.replace("{number}", str(agent * 100 + number))
                    if kind == 5:
                        code = "import time; time.sleep(60)"
                    replies[agent * 100 + number] = kind, self.start(code, timeout=0.5 if kind == 5 else None)
            for number, (kind, reply) in replies.items():
                if kind == 4:
                    self.client.cancel(reply)
                    continue
                answer = self.answer(reply, 300)
                if answer["status"] == "unavailable":
                    self.assertEqual(answer["error"]["code"], "overloaded", answer)
                elif kind == 5:
                    self.assertEqual(answer["status"], "timeout", answer)
                else:
                    self.assertEqual((answer["status"], answer["stdout"]), ("success", f"{number}\n"), answer)
        finally:
            over.set()
            counting.join()
        # Those that run, those that wait, one that boots and those that are being removed.
        self.assertGreater(max(most), 0)
        self.assertLessEqual(max(most), 3 + 2 + 1 + 3)
        wait_until(lambda: not zombies_of(self.client.pid), 30, "every child is reaped")
        wait_until(lambda: len(containers_of(self.client.instance)) <= 2, 30, "only the pool is left")


class InTheSandbox(BulkheadTest):
    def test_orphans_of_the_code_are_reaped_by_init(self):
        answer = self.run_well("""
            import os, time
            for _ in range(50):
                if os.fork() == 0:
                    if os.fork() == 0:
                        os._exit(0)
                    os._exit(0)
                os.wait()
            def zombies():
                found = 0
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    try:
                        found += open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z"
                    except OSError:
                        pass
                return found
            end = time.monotonic() + 20
            while zombies() and time.monotonic() < end:
                time.sleep(0.05)
            print(zombies())
        """)
        self.assertEqual(answer["stdout"], "0\n")
        self.assert_nothing_left()
