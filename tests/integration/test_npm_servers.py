"""Real MCP servers from npm, called by code in a sandbox, all of them in one run."""

import json
import os
import shutil

from host import patience, read, wait_until
from instances import is_alive, processes_of
from npm import installed
from world import HERE, BulkheadTest

CODE = """
import asyncio, json
from mcp.runtime import MCPError
answers = await asyncio.gather(
    mcp_everything.get_sum(a=40, b=2),
    mcp_everything_old.add(a=40, b=2),
    mcp_files.read_text_file(path=FOLDER + "/greeting.txt"),
    mcp_memory.create_entities(entities=[{"name": "Ada", "entityType": "person", "observations": ["wrote"]}]),
    mcp_thinking.sequentialthinking(thought="one", thoughtNumber=1, totalThoughts=1, nextThoughtNeeded=False),
    mcp_commander.read_file(path=FOLDER + "/greeting.txt"))
await mcp_files.write_file(path=FOLDER + "/written.txt", content="by code")
graph = await mcp_memory.read_graph()
image = await mcp_servers["everything"]["get-tiny-image"]()
try:
    await mcp_files.read_text_file(path="/etc/hostname")
    outside = "read"
except MCPError as e:
    outside = e.code
print(json.dumps({"answers": answers, "graph": graph, "outside": outside, "image": image}))
"""


class NpmServers(BulkheadTest):
    NAMES = ("everything", "everything-old", "files", "memory", "thinking", "commander")

    @staticmethod
    def servers(world):
        packages = installed("test-servers", os.path.join(HERE, "npm_servers"))
        folder = world.path("data")
        os.mkdir(folder)
        with open(os.path.join(folder, "greeting.txt"), "w", encoding="utf-8") as file:
            file.write("a greeting")

        def server(package, *arguments, **env):
            program = os.path.join(packages, "node_modules", package, "dist", "index.js")
            return {"command": shutil.which("node"), "args": [program, *arguments], "env": env}
        return {"everything": server("server-everything"),
                "everything-old": server("server-everything-old"),
                "files": server("server-filesystem", folder),
                "memory": server("server-memory", MEMORY_FILE_PATH=os.path.join(folder, "memory.json")),
                "thinking": server("server-sequential-thinking"),
                # It keeps its settings at home.
                "commander": server("desktop-commander", HOME=folder)}

    def test_all_in_one_run(self):
        client = self.world.client()
        folder = self.world.path("data")
        answer = client.run(f"FOLDER = {folder!r}\n" + CODE, self.NAMES, timeout=100, wait=patience(150))
        self.assert_success(answer)
        found = json.loads(answer["stdout"])
        total, old_total, text, entities, thought, commanders_text = map(json.dumps, found["answers"])
        self.assertIn("42", total)
        self.assertIn("42", old_total)
        self.assertIn("a greeting", text)
        self.assertIn("Ada", entities)
        self.assertIn("thoughtNumber", thought)
        self.assertIn("a greeting", commanders_text)
        self.assertIn("Ada", json.dumps(found["graph"]))
        self.assertIn("image/png", json.dumps(found["image"]))
        # The server's own rule, not ours: the host reads what the account may.
        self.assertEqual(found["outside"], "tool_error")
        self.assertEqual(read(os.path.join(folder, "written.txt")), "by code")
        processes = [pid for pid in processes_of(client.instance) if "dist/index.js" in read(f"/proc/{pid}/cmdline")]
        self.assertGreaterEqual(len(processes), len(self.NAMES))
        # Also those that don't end when their input does.
        self.assertEqual(client.close(patience(20)), 0)
        self.world.assert_clean(client.instance, alive=False)
        wait_until(lambda: not [pid for pid in processes if is_alive(pid)], 5, "the servers are gone")
