"""What the attacks have in common: one server, recorders where nothing may arrive, and a memory budget."""

from host import patience, read
from stdio_client import status_field
from world import BulkheadTest, inside

MEBIBYTE = 1 << 20
# The budget for all that is held for others, and what the program itself may need beside it.
MEMORY_BUDGET = 256 * MEBIBYTE
MEMORY_SLACK = 64 * MEBIBYTE


class HostileTest(BulkheadTest):
    """One server for all attacks, with recorders where nothing may arrive."""

    rules = {"deny": ["forbidden", "open/fail", "open/ex*"]}
    variables = {"MCP_BRIDGE_LOG_LEVEL": "warning"}

    @staticmethod
    def servers(world):
        return {"open": world.recorder("open.calls"),
                "other-server": world.odd_server(env={"STARTS": world.path("other.starts"),
                                                      "CALLS": world.path("other.calls")}),
                "forbidden": world.recorder("forbidden.calls")}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client.run("pass", wait=patience(90))
        cls.base = cls.resident("VmRSS")

    @classmethod
    def resident(cls, field):
        return int(status_field(cls.client.pid, field).split()[0]) * 1024

    @classmethod
    def tearDownClass(cls):
        try:
            high = cls.resident("VmHWM")
            if high > cls.base + MEMORY_BUDGET + MEMORY_SLACK:
                raise AssertionError(f"{high >> 20} MiB were resident, {cls.base >> 20} MiB at the start")
            for record in ("other.starts", "other.calls", "forbidden.calls"):
                text = read(cls.world.path(record))
                if text:
                    raise AssertionError(f"{record}: {text}")
            denied = [c for c in cls.world.recorded("open.calls") if c["tool"] not in ("echo", "slow", "add")]
            if denied:
                raise AssertionError(f"denied tools were called: {denied}")
        finally:
            super().tearDownClass()

    def attack(self, code, timeout=60, servers=("open",)):
        return self.start(inside("hostile") + "\n" + code, servers, timeout)

    def outcome(self, reply):
        """"success", the code of the error, or the status."""
        answer = self.answer(reply)
        return answer["status"] if answer["status"] == "success" else answer["error"].get("code", answer)

    def after_attack(self):
        self.assert_still_serves()
        self.assert_nothing_left()
