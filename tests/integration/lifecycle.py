"""What the tests of life and death have in common."""

import os
import signal
import time

from host import instances_dir, wait_until
from instances import engine_commands, guests_of, is_alive
from world import BulkheadTest

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def settle(instance):
    """A sweep leaves folders alone that are ten seconds young: they may be of a server that is just starting.
    Makes a dead one's older than that, if it is still there."""
    try:
        os.utime(f"{instances_dir()}/{instance}", (time.time() - 60,) * 2)
    except FileNotFoundError:
        pass


class LifecycleTest(BulkheadTest):
    ending = frozenset()  # guests of earlier runs that are still there

    def start(self, *arguments, **options):
        self.ending = frozenset(guests_of(self.client.instance))
        return super().start(*arguments, **options)

    def start_sleeper(self):
        """A run whose code goes on; before that, another sandbox would take the run of one that dies."""
        up = os.path.join(self.world.state, "user_tools", "up")
        reply = self.start("open('/projects/up', 'w').close(); " + SLEEPER)
        wait_until(lambda: os.path.exists(up), 30, "the code runs")
        os.remove(up)
        return reply

    def wait_for_guest(self, client=None):
        """A running guest of the server; its process. Not one that is about to end: a run is answered first."""
        instance = (client or self.client).instance
        return wait_until(lambda: [pid for pid in guests_of(instance) if pid not in self.ending], 30,
                          "a guest runs")[0]

    def start_and_find(self, code):
        """Starts a run; its answer, and the engine's command for it as soon as there is one."""
        others = engine_commands(self.client.pid)
        reply = self.start(code)
        new = wait_until(lambda: [pid for pid in engine_commands(self.client.pid) if pid not in others], 30,
                         "a container is started")
        return reply, new[0]

    def now(self, engine):
        """The command that was found, or what it has handed its container over to since, while there is one only."""
        return engine if is_alive(engine) else engine_commands(self.client.pid)[0]

    def assert_no_answer(self, reply, seconds=0.5):
        with self.assertRaises(TimeoutError):
            reply.message(seconds)
