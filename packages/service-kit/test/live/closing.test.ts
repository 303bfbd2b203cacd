/** A server that ends, and clients with open connections to it: no request meets a connection that is being closed. */
import { once } from "node:events";
import { Agent, request } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { type HttpServer, InnerClient, type Lifecycle } from "../../src/index.ts";
import { testApp } from "../support/app.ts";

interface Served {
  app: HttpServer;
  port: number;
  /** As a component does it. */
  end: () => Promise<void>;
}

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

async function serve(wanted = 0): Promise<Served> {
  const lifecycle: Lifecycle = { state: "running" };
  const { app } = testApp({ lifecycle });
  app.addContentTypeParser("application/octet-stream", (_request, _payload, done) => done(null));
  app.get("/short", async () => "done");
  app.put("/bytes", async ({ raw }) => ({ length: (await buffer(raw)).length }));
  app.get<{ Querystring: { ms: string } }>("/work", ({ query }) => sleep(Number(query.ms), "done"));
  app.get("/told", async (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "text/plain" });
    reply.raw.write("one ");
    app.server.once("go on", () => reply.raw.end("two"));
  });
  await app.listen({ port: wanted, host: "127.0.0.1" });
  const end = async () => {
    lifecycle.state = "stopping";
    await app.close();
  };
  cleanUps.push(() => app.close());
  return { app, end, port: (app.server.address() as AddressInfo).port };
}

function keptAlive() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanUps.push(async () => agent.destroy());
  return async (port: number, path: string) => {
    const sent = request({ port, path, agent, host: "127.0.0.1" }).end();
    const [answer] = await once(sent, "response");
    return { answer, reused: sent.reusedSocket, connection: answer.headers.connection };
  };
}

it("a request on a connection that was open before is served, and is its last", async () => {
  const { port, end } = await serve();
  const get = keptAlive();
  const before = await get(port, "/short");
  expect([await text(before.answer), before.connection]).toEqual(["done", "keep-alive"]);
  const ended = end();
  await sleep(100);
  const late = await get(port, "/short");
  expect([await text(late.answer), late.reused, late.connection]).toEqual(["done", true, "close"]);
  await ended;
  await expect(get(port, "/short")).rejects.toThrow("ECONNREFUSED");
});

it("an answer that was waited for when the end began is the last of its connection", async () => {
  const { port, end } = await serve();
  const get = keptAlive();
  await text((await get(port, "/short")).answer);
  const waited = get(port, "/work?ms=1000");
  await sleep(200);
  const ended = end();
  const { answer, connection } = await waited;
  expect([await text(answer), connection]).toEqual(["done", "close"]);
  await ended;
});

it("an answer that had begun is told to its end, and its connection ends with it", async () => {
  const { app, port, end } = await serve();
  const get = keptAlive();
  const { answer } = await get(port, "/told");
  const closed = once(answer.socket, "close");
  const ended = end();
  await sleep(100);
  app.server.emit("go on");
  expect(await text(answer)).toBe("one two");
  await Promise.all([closed, ended]);
});

it("one whose client says nothing more keeps nobody waiting for long", async () => {
  const { port, end } = await serve();
  await text((await keptAlive()(port, "/short")).answer);
  await end();
});

it("our own clients lose no request to a server that is replaced, sent once and with a body that cannot be sent again", async () => {
  let served = await serve();
  const { port } = served;
  const client = new InnerClient({
    baseUrl: `http://127.0.0.1:${port}`,
    unreachable: "storage_unavailable",
    refusedMs: 30_000,
  });
  cleanUps.push(() => client.close());
  let isOver = false;
  const put = () =>
    client.json<{ length: number }>({
      method: "PUT",
      path: "/bytes",
      headers: { "content-type": "application/octet-stream" },
      body: Readable.from([Buffer.alloc(10_000), Buffer.alloc(10_000)]),
    });
  // Pauses from none to longer than a server waits.
  const senders = Array.from({ length: 12 }, async (_, at) => {
    while (!isOver) {
      expect((await put()).length).toBe(20_000);
      await sleep(at * 150);
    }
  });
  const replaced = (async () => {
    for (let round = 0; round < 6; round++) {
      await sleep(150 + round * 37);
      await served.end();
      served = await serve(port);
    }
  })().finally(() => {
    isOver = true;
  });
  await Promise.all([replaced, ...senders]);
});
