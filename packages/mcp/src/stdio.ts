/** The server over standard input and output, for a host that starts it as its own process. */
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createServer, type ServerOptions } from "./server.ts";

/** Resolves when the host has closed the input, or no longer reads. Runs that the host waited for are then cancelled. */
export async function serveStdio(options: ServerOptions): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const server = createServer(options);
  server.onclose = resolve;
  const close = () => void server.close();
  process.stdin.once("end", close);
  process.stdin.once("close", close);
  process.stdout.once("error", close);
  await server.connect(new StdioServerTransport());
  await closed;
}
