import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { ServiceError } from "@svc/contracts";
import { afterEach, expect, it } from "vitest";
import { BodyReader } from "../../src/http/body-reader.ts";

const TIMEOUT_MS = 100;
const server = createServer();
let socket: Socket;
afterEach(() => {
  socket.destroy();
  server.close();
});

/** A request that has sent its head, and its reader. */
async function begin(): Promise<BodyReader> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n");
  const [request] = (await once(server, "request")) as [IncomingMessage];
  const late = () => new ServiceError("invalid_request", "late");
  return new BodyReader(request, { maxBytes: 4, timeoutMs: TIMEOUT_MS, late });
}

it("does not call a client late whose bytes came while this process was busy", async () => {
  const reader = await begin();
  const read = reader.next();
  socket.write("body");
  for (const began = performance.now(); performance.now() - began <= 2 * TIMEOUT_MS; );
  expect((await read)?.toString()).toBe("body");
  expect(await reader.next()).toBeUndefined();
});

it("calls a client late that sends nothing", async () => {
  await expect((await begin()).next()).rejects.toThrow("late");
});
