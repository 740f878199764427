"""Parts of containers die at random moments, waiting ones and running ones, under load."""

import os
import random
import time

from host import as_account, wait_until
from instances import (containers_of, engine_commands, guests_of, monitors_of, orphaned_storage,
                       remove_container, services_of)
from lifecycle import LifecycleTest, kill
from world import LONG

PROGRAMS = ["print('fine')",
            "import time; time.sleep(0.4); print('fine')",
            "print(await mcp_stub.echo(message='fine'))",
            "import subprocess; subprocess.run(['echo', 'fine'])"]


class Chaos(LifecycleTest):
    variables = {"MCP_BRIDGE_POOL": "2:4"}
    SECONDS = 600 if LONG else 60
    IN_FLIGHT = 3

    @staticmethod
    def servers(world):
        return {"stub": world.recorder("calls")}

    @classmethod
    def setUpClass(cls):
        cls.orphans = orphaned_storage()
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        wait_until(lambda: orphaned_storage() <= cls.orphans, 5, "nothing is left in the engine's storage")

    def kill_one(self, pids):
        [kill(pid) for pid in self.chance.sample(pids, 1)]

    def victims(self):
        """Ways to kill something of a container, and how often they are to be taken."""
        return [(6, lambda: self.kill_one(engine_commands(self.client.pid))),
                (6, lambda: as_account("podman", "unshare", "kill", "-9",
                                       str(self.chance.choice(guests_of(self.client.instance))), check=False)),
                (3, lambda: remove_container(self.chance.choice(containers_of(self.client.instance)))),
                # Without its monitor podman's command takes 20 s to give up.
                (1, lambda: self.kill_one(monitors_of(self.client.instance)))]

    def strike(self):
        try:
            weights, ways = zip(*self.victims())
            self.chance.choices(ways, weights)[0]()
        except (IndexError, ValueError):
            pass  # nothing there to kill at the moment

    def check(self, reply):
        answer = self.answer(reply, wait=120)
        if answer["status"] == "success":
            self.assertEqual(answer.get("stdout"), "fine\n", answer)
        else:
            self.assertIn(answer["error"]["code"], ("runtime_lost", "unavailable"), answer)
        return answer["status"]

    def test_every_run_is_answered_and_nothing_is_left(self):
        seed = int(os.environ.get("BULKHEAD_TEST_SEED") or time.time())
        self.chance = random.Random(seed)
        outcomes, replies = [], []
        deadline = time.monotonic() + self.SECONDS
        with self.subTest(BULKHEAD_TEST_SEED=seed):
            while time.monotonic() < deadline:
                while len(replies) < self.IN_FLIGHT:
                    replies.append(self.start(self.chance.choice(PROGRAMS), ["stub"]))
                time.sleep(self.chance.uniform(0, 0.3))
                self.strike()
                for reply in [each for each in replies if each.done]:
                    replies.remove(reply)
                    outcomes.append(self.check(reply))
            outcomes += [self.check(reply) for reply in replies]
            self.assertIn("success", outcomes)
            self.assertIn("error", outcomes)
            self.assert_still_serves()
            surprises = [each for each in self.client.notifications if "method" not in each]
            self.assertEqual(surprises, [], "answers that nobody waits for")


class ChaosByRest(Chaos):
    """The same with podman's service, which takes all sandboxes with it when it dies."""

    variables = {"MCP_BRIDGE_POOL": "2:4", "MCP_BRIDGE_DRIVER": "rest"}

    def victims(self):
        return [(2, lambda: self.kill_one(services_of(self.client.instance))), *super().victims()[1:]]
