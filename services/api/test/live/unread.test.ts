/** Answers over real connections, of POST /mcp and of an ordinary route: readers that take nothing, and readers that are slow. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { mcpRoute } from "@svc/api/mcp/route";
import { giveUpUnread } from "@svc/api/unread";
import { createHttpServer, createLog, type HttpServer, loadConfig } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

/** Longer than the answer takes to be made. */
const STALLED_MS = 4000;
/** More than the kernel keeps for a connection that nobody reads; the answers have it twice. */
const LARGE = "x".repeat(10 * 2 ** 20);
const LANGUAGE = { name: LARGE, version: "1", aliases: [], packages: [], status: "ready" };
const BODY = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "list_languages", arguments: {} },
});
let app: HttpServer;

beforeEach(async () => {
  const config = loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
  });
  const log = createLog("api", config);
  app = createHttpServer({ log, lifecycle: { state: "running" }, alwaysOn: [], bodyLimit: 1024 });
  mcpRoute(app, { config, principalOf: () => ({ tenantId: "t", userId: "u" }) }, STALLED_MS);
  giveUpUnread(app, STALLED_MS);
  app.post("/large", () => ({ once: LARGE, twice: LARGE }));
  app.get("/v1/languages", () => ({ languages: [LANGUAGE] }));
  await app.listen({ port: 0, host: "127.0.0.1" });
});
afterEach(() => app.close());

/** Has asked, and takes nothing until it is told to. */
function client(path: string): Socket {
  const { port } = app.server.address() as { port: number };
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: localhost",
    "Accept: application/json, text/event-stream",
    "Content-Type: application/json",
    "Connection: close",
    `Content-Length: ${BODY.length}`,
  ];
  socket.pause().write(`${head.join("\r\n")}\r\n\r\n${BODY}`);
  return socket;
}

describe.each(["/mcp", "/large"])("an answer of %s", (path) => {
  it("whose reader takes nothing is given up", async () => {
    const connected = once(app.server, "connection");
    const socket = client(path);
    try {
      const [server] = (await connected) as [Socket];
      await expect.poll(() => server.bytesWritten).toBeGreaterThan(LARGE.length);
      await expect.poll(() => server.destroyed).toBe(true);
    } finally {
      socket.destroy();
    }
  });

  it("whose reader is slow comes whole, although that takes longer", async () => {
    const socket = client(path);
    const beganMs = performance.now();
    let bytes = 0;
    socket.on("data", (piece) => {
      bytes += piece.length;
      socket.pause();
    });
    const timer = setInterval(() => socket.resume(), 20);
    await once(socket, "close");
    clearInterval(timer);
    expect(performance.now() - beganMs).toBeGreaterThan(STALLED_MS);
    expect(bytes).toBeGreaterThan(2 * LARGE.length);
  });
});
