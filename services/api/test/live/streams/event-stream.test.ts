/** Answers with events over real connections: readers that are slow, that read nothing, and that leave. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { EventStream } from "@svc/api/streams/event-stream";
import { createHttpServer, createLog, type HttpServer, loadConfig } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterEach, beforeEach, expect, it } from "vitest";

const TIMES = { quietMs: 60_000, stalledMs: 60_000 };
const LARGE = "x".repeat(20 * 1024 * 1024);
let app: HttpServer;
let opened: Promise<EventStream>;
/** A hook holds the request for /held until its client has left. */
let held: PromiseWithResolvers<void>;
let times = TIMES;

beforeEach(async () => {
  const env = { LOCAL_MODE: "true", LOG_LEVEL: "fatal", SVC_INTERNAL_SERVICE_TOKEN: newSecret() };
  const log = createLog("api", loadConfig("api", env));
  app = createHttpServer({ log, lifecycle: { state: "running" }, alwaysOn: [], bodyLimit: 1024 } as never);
  const made = Promise.withResolvers<EventStream>();
  opened = made.promise;
  held = Promise.withResolvers();
  app.addHook("preHandler", async (request, reply) => {
    if (request.url !== "/held") return;
    held.resolve();
    await once(reply.raw, "close");
  });
  for (const path of ["/", "/held"])
    app.get(path, (_request, reply) => {
      const stream = new EventStream(reply, times);
      stream.open();
      made.resolve(stream);
      return reply;
    });
  await app.listen({ port: 0, host: "127.0.0.1" });
});
afterEach(async () => {
  times = TIMES;
  await app.close();
});

/** A client that takes nothing until it is told to. */
function client(path = "/"): Socket {
  const { port } = app.server.address() as { port: number };
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined).pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket;
}

/** Takes a piece now and then until the connection has closed; how much there was. */
async function readSlowly(socket: Socket, everyMs: number): Promise<number> {
  let bytes = 0;
  socket.on("data", (piece) => {
    bytes += piece.length;
    socket.pause();
  });
  const timer = setInterval(() => socket.resume(), everyMs);
  await once(socket, "close");
  clearInterval(timer);
  return bytes;
}

it("a reader that takes nothing is given up, and what waits for it goes on", async () => {
  times = { ...TIMES, stalledMs: 200 };
  const socket = client();
  const stream = await opened;
  await stream.send("stdout", { text: LARGE });
  expect(stream.isClosed).toBe(true);
  await stream.send("result", {});
  stream.end();
  socket.destroy();
});

it("a reader that is slow gets all of it, although that takes longer", async () => {
  times = { ...TIMES, stalledMs: 1000 };
  const socket = client();
  const reading = readSlowly(socket, 10);
  const stream = await opened;
  const beganMs = performance.now();
  await stream.send("stdout", { text: LARGE });
  expect(performance.now() - beganMs).toBeGreaterThan(times.stalledMs);
  expect(stream.isClosed).toBe(false);
  stream.end();
  // The connection is kept for a further request, of which there is none.
  socket.write("GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  expect(await reading).toBeGreaterThan(LARGE.length);
});

it("a reader that leaves ends the waiting for it", async () => {
  const socket = client();
  const stream = await opened;
  const sent = stream.send("stdout", { text: LARGE });
  socket.destroy();
  await sent;
  expect(stream.closed.aborted).toBe(true);
});

it("a reader that left before there was a stream is noticed, and nothing waits for it", async () => {
  const socket = client("/held");
  await held.promise;
  socket.destroy();
  const stream = await opened;
  expect(stream.closed.aborted).toBe(true);
  await stream.send("stdout", { text: LARGE });
  stream.end();
});

it("comments come between events, never within one", async () => {
  times = { ...TIMES, quietMs: 20 };
  const socket = client();
  const stream = await opened;
  let text = "";
  const sent = stream.send("stdout", { text: LARGE });
  // The reader takes it after several comments would have come.
  setTimeout(
    () =>
      socket
        .setEncoding("latin1")
        .on("data", (piece: string) => (text += piece))
        .resume(),
    200,
  );
  await sent;
  await expect.poll(() => text.match(/\n:\n\n/g)?.length ?? 0).toBeGreaterThan(2);
  stream.end();
  const event = text.slice(text.indexOf("event: stdout"), text.lastIndexOf('"}'));
  expect(event).not.toContain(":\n\n");
  socket.destroy();
});
