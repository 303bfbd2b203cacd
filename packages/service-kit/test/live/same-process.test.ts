/** Connections in memory: the same HTTP as over a socket, whoever leaves, breaks off or is slow. */
import { once } from "node:events";
import { Socket } from "node:net";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  CLIENT_LEFT,
  type FastifyReply,
  type HttpServer,
  InnerClient,
  requireInternalToken,
} from "../../src/index.ts";
import { testApp } from "../support/app.ts";

const CHUNK = 64 * 1024;
const LIMIT = 100_000;
/** More than lies in the streams of one connection, and far less than what a test offers. */
const BOUND = 2 * 2 ** 20;

let app: HttpServer;
let logged: () => string;
let baseUrl: string;
let client: InnerClient;
let finish: () => void;
const released = () => new Promise<void>((resolve) => (finish = resolve));
const created = (options = {}) =>
  new InnerClient({ baseUrl, unreachable: "storage_unavailable", late: "upstream_unavailable", ...options });

/** Bytes without end, and how many of them were asked for. */
function endless(): { body: Readable; produced: () => number } {
  let bytes = 0;
  async function* chunks() {
    for (;;) {
      bytes += CHUNK;
      yield Buffer.alloc(CHUNK);
      await turn();
    }
  }
  return { body: Readable.from(chunks(), { objectMode: false }), produced: () => bytes };
}

/** Waits until a number no longer grows. */
async function settled(number: () => number): Promise<number> {
  for (let last = -1, same = 0; same < 200; await turn()) {
    same = number() === last ? same + 1 : 0;
    last = number();
  }
  return number();
}

const answered = (reply: FastifyReply) => once(reply.raw, "close").then(() => reply.raw.writableFinished);
let source = endless();
let ended: Promise<boolean>;
let received = 0;

beforeEach(async () => {
  source = endless();
  received = 0;
  ({ app, logged } = testApp({ bodyLimit: LIMIT, requestFields: () => ({}) }));
  app.addContentTypeParser("application/octet-stream", (_request, _payload, done) => done(null));
  app.addHook("onRequest", async (_request, reply) => {
    ended = answered(reply);
  });
  app.get("/socket", async ({ raw }) => ({ isSocket: raw.socket instanceof Socket }));
  app.get("/inner", { onRequest: requireInternalToken(["right"]) }, async () => ({ ok: true }));
  app.get<{ Params: { size: string } }>("/closing/:size", ({ params }, reply) =>
    reply.header("connection", "close").send(Buffer.alloc(Number(params.size))),
  );
  app.get("/endless", (_request, reply) => reply.send(source.body));
  app.get("/cut", (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { "content-length": 100 }).write("begun", () => reply.raw.destroy());
  });
  app.post("/json", async () => ({ ok: true }));
  app.put("/unread", async () => {
    app.server.emit("waiting");
    await released();
    return { ok: true };
  });
  app.put("/read", async ({ raw }) => {
    for await (const chunk of raw) received += chunk.length;
    return { received };
  });
  app.get("/slow", async () => {
    app.server.emit("waiting");
    await released();
    return { ok: true };
  });
  baseUrl = await app.listen({ port: 0, host: "127.0.0.1" });
  client = created();
});
afterEach(async () => {
  await client.close();
  await app.close();
});

const put = (path: string, body: Readable, signal?: AbortSignal) =>
  client.send({ method: "PUT", path, body, signal, headers: { "content-type": "application/octet-stream" } });

test("a call within a process uses no socket", async () => {
  expect(await client.json({ method: "GET", path: "/socket" })).toEqual({ isSocket: false });
});

test("a call to another name of the address uses a socket", async () => {
  const other = created({ baseUrl: baseUrl.replace("127.0.0.1", "localhost") });
  expect(await other.json({ method: "GET", path: "/socket" })).toEqual({ isSocket: true });
  await other.close();
});

test("the internal token is asked for", async () => {
  const knowing = created({ internalToken: "right" });
  expect(await knowing.json({ method: "GET", path: "/inner" })).toEqual({ ok: true });
  await knowing.close();
  const response = await client.send({ method: "GET", path: "/inner" });
  expect(response.statusCode).toBe(401);
  await response.body.dump();
});

test.each([0, 10, 20 * CHUNK])(
  "an answer of %i bytes before the end of its connection counts as sent",
  async (size) => {
    const { body } = await client.send({ method: "GET", path: `/closing/${size}` });
    expect((await body.arrayBuffer()).byteLength).toBe(size);
    expect(await ended).toBe(true);
    expect(logged()).not.toContain(`"status":${CLIENT_LEFT}`);
  },
);

test("an answer that is cut is no complete answer", async () => {
  const response = await client.send({ method: "GET", path: "/cut" });
  await expect(response.body.text()).rejects.toThrow();
});

test("an answer of which nothing is read stops growing, and ends with its reader", async () => {
  const { body } = await client.send({ method: "GET", path: "/endless" });
  expect(await settled(source.produced)).toBeLessThan(BOUND);
  const stopped = once(source.body, "close");
  body.on("error", () => undefined).destroy();
  await stopped;
  expect(await ended).toBe(false);
  await expect.poll(logged).toContain(`"status":${CLIENT_LEFT}`);
});

test("a caller that gives up ends the request in work", async () => {
  const controller = new AbortController();
  const waiting = once(app.server, "waiting");
  const sent = client.send({ method: "GET", path: "/slow", signal: controller.signal });
  await waiting;
  controller.abort(new Error("given up"));
  await expect(sent).rejects.toThrow("given up");
  expect(await ended).toBe(false);
  finish();
});

test("an answer that does not begin in time is late", async () => {
  const late = created({ timeoutMs: 20 });
  await expect(late.send({ method: "GET", path: "/slow" })).rejects.toMatchObject({
    code: "upstream_unavailable",
  });
  expect(await ended).toBe(false);
  finish();
  await late.close();
});

test("a body that nobody reads stops growing, and one that is read goes on", async () => {
  const waiting = once(app.server, "waiting");
  const controller = new AbortController();
  const sent = put("/unread", source.body, controller.signal);
  await waiting;
  expect(await settled(source.produced)).toBeLessThan(BOUND);
  controller.abort(new Error("given up"));
  await expect(sent).rejects.toThrow("given up");
  expect(await ended).toBe(false);
  finish();
  const { body } = await put("/read", Readable.from(Array(100).fill(Buffer.alloc(CHUNK))));
  expect(await body.json()).toEqual({ received: 100 * CHUNK });
});

test("a body that breaks off is no complete body", async () => {
  const controller = new AbortController();
  const sent = put("/read", source.body, controller.signal);
  await expect.poll(() => received).toBeGreaterThan(BOUND);
  controller.abort(new Error("given up"));
  await expect(sent).rejects.toThrow("given up");
  expect(await ended).toBe(false);
});

test("a body above its limit is refused while it is sent", async () => {
  const body = JSON.stringify("x".repeat(LIMIT));
  const headers = { "content-type": "application/json" };
  const response = await client.send({ method: "POST", path: "/json", body, headers });
  expect(response.statusCode).toBe(413);
  expect(await response.body.json()).toMatchObject({ error: "request_too_large" });
  expect(await client.json({ method: "POST", path: "/json", body: "{}", headers })).toEqual({ ok: true });
});

test("a server that ends waits for the request in work, and takes no other", async () => {
  const waiting = once(app.server, "waiting");
  const answer = client.json({ method: "GET", path: "/slow" });
  await waiting;
  const stopped = once(app.server, "close");
  const closed = app.close();
  await stopped;
  await expect(created().send({ method: "GET", path: "/socket" })).rejects.toThrow();
  finish();
  expect(await answer).toEqual({ ok: true });
  await closed;
});
