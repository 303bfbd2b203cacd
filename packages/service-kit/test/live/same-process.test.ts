import { once } from "node:events";
import { Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type HttpServer, InnerClient } from "../../src/index.ts";
import { testApp } from "../support/app.ts";

let app: HttpServer;
let client: InnerClient;
let finish: () => void;
const released = () => new Promise<void>((resolve) => (finish = resolve));

beforeEach(async () => {
  ({ app } = testApp({ bodyLimit: 1000 }));
  app.get("/socket", async ({ raw }) => ({ isSocket: raw.socket instanceof Socket }));
  app.get("/cut", (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { "content-length": 100 }).write("begun", () => reply.raw.destroy());
  });
  app.get("/slow", async () => {
    app.server.emit("slow");
    await released();
    return { ok: true };
  });
  const baseUrl = await app.listen({ port: 0, host: "127.0.0.1" });
  client = new InnerClient({ baseUrl, unreachable: "storage_unavailable" });
});
afterEach(async () => {
  await client.close();
  await app.close();
});

test("a call within a process uses no socket", async () => {
  expect(await client.json({ method: "GET", path: "/socket" })).toEqual({ isSocket: false });
});

test("an answer that is cut is no complete answer", async () => {
  const response = await client.send({ method: "GET", path: "/cut" });
  await expect(response.body.text()).rejects.toThrow();
});

test("a server that ends waits for the request in work, and takes no other", async () => {
  const slow = once(app.server, "slow");
  const answer = client.json({ method: "GET", path: "/slow" });
  await slow;
  const closed = app.close();
  finish();
  expect(await answer).toEqual({ ok: true });
  await closed;
  await expect(client.send({ method: "GET", path: "/socket" })).rejects.toThrow();
});
