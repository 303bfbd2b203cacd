import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { testApp } from "../support/app.ts";

/** Far less than the time in which a client may send its headers. */
const SOON_MS = 10_000;

/** However it ends. */
const end = (socket: Socket) => new Promise<void>((resolve) => socket.once("close", () => resolve()));

async function listening() {
  const { app } = testApp();
  app.get("/things", async () => ({ ok: true }));
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const client = async () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  };
  return { app, client };
}

it("does not wait for connections on which nothing was ever sent", async () => {
  const { app, client } = await listening();
  const silent = await Promise.all([client(), client()]);
  const ended = Promise.all(silent.map(end));
  expect(await Promise.race([app.close().then(() => "closed"), sleep(SOON_MS, "waits")])).toBe("closed");
  await ended;
});

it("answers a request whose first bytes were there", async () => {
  const { app, client } = await listening();
  const accepted = once(app.server, "connection");
  const socket = await client();
  const [served] = (await accepted) as [Socket];
  socket.write("GET /things HTTP/1.1\r\n");
  await expect.poll(() => served.bytesRead).toBeGreaterThan(0);
  const silent = await client();
  const ended = end(silent);
  const closed = app.close();
  await ended;
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  const answered = end(socket);
  socket.write("Host: x\r\n\r\n");
  await answered;
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  await closed;
});
