// A server of revision 2026-07-28 alone, by the SDK. Notes each call on stdout.
import { createServer } from "node:http";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { z } from "zod";

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "modern", version: "1.0.0" });
  server.registerTool("echo", { inputSchema: z.object({ message: z.string() }) }, async ({ message }) => {
    return { content: [{ type: "text", text: message }] };
  });
  server.registerTool("wait", { inputSchema: z.object({ seconds: z.number() }) }, async ({ seconds }) => {
    console.log("waiting");
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    return { content: [{ type: "text", text: "waited" }] };
  });
  return server;
}, { legacy: "reject" });
createServer(toNodeHandler(handler)).listen(Number(process.env.PORT), "127.0.0.1");
