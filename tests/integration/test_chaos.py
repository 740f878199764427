"""Parts of containers die at random moments, waiting ones and running ones, under load."""

import os
import random
import time

from host import as_account, wait_until
from instances import (containers_of, engine_commands, guests_of, monitors_of, orphaned_storage,
                       remove_container)
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

    def victims(self):
        """Ways to kill something of a container, in the order of how often they are to be taken."""
        return [lambda: [kill(pid) for pid in self.chance.sample(engine_commands(self.client.pid), 1)],
                lambda: as_account("podman", "unshare", "kill", "-9",
                                   str(self.chance.choice(guests_of(self.client.instance))), check=False),
                lambda: remove_container(self.chance.choice(containers_of(self.client.instance))),
                # Without its monitor podman's command takes 20 s to give up.
                lambda: [kill(pid) for pid in self.chance.sample(monitors_of(self.client.instance), 1)]]

    def strike(self):
        try:
            self.chance.choices(self.victims(), weights=(6, 6, 3, 1))[0]()
        except (IndexError, ValueError):
            pass  # nothing there to kill at the moment

    def check(self, reply):
        answer = self.answer(reply, wait=120)
        if answer["status"] == "success":
            self.assertEqual(answer["stdout"], "fine\n")
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
