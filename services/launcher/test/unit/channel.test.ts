import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { join } from "../../src/channel/bridge.ts";
import {
  Channel,
  type ChannelOptions,
  LEAST_COST,
  MAX_STRAYS,
  MAX_STREAMS,
  WINDOW,
} from "../../src/channel/channel.ts";
import { encodeCredit, encodeFrame, FrameDecoder } from "../../src/channel/frames.ts";
import { encodePreface, readPreface } from "../../src/channel/preface.ts";

const open: { destroy(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

/** Both ends of a connection over loopback. */
async function wire(): Promise<[Socket, Socket]> {
  const server = createTcpServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const left = connect({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    allowHalfOpen: true,
  });
  const [right] = (await once(server, "connection")) as [Socket];
  server.close();
  open.push(left, right);
  return [left, right];
}

async function pair(onStream: (stream: Duplex) => void): Promise<Channel> {
  const [left, right] = await wire();
  new Channel(right, { onStream });
  return new Channel(left);
}

/** A channel, and the bytes of the other side by hand. */
async function against(options: ChannelOptions = {}): Promise<{
  channel: Channel;
  hostile: Socket;
  ended: Promise<Error | undefined>;
}> {
  const [left, hostile] = await wire();
  hostile.on("error", () => undefined);
  const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
  return { channel: new Channel(left, { ...options, onEnd: resolve }), hostile, ended };
}

const times = (count: number, frame: Buffer) => Buffer.concat(Array.from({ length: count }, () => frame));

test("many streams carry megabytes both ways at once, each its own", async () => {
  const channel = await pair((stream) => stream.pipe(stream));
  await Promise.all(
    Array.from({ length: 20 }, async (_, at) => {
      const sent = randomBytes(1_000_000 + at);
      const stream = channel.open();
      stream.end(sent);
      expect((await buffer(stream)).equals(sent)).toBe(true);
    }),
  );
  await expect.poll(() => channel.streams).toBe(0);
});

test("who does not read stops the other side after a window, and other streams go on", async () => {
  const streams: Duplex[] = [];
  const channel = await pair((stream) => {
    streams.push(stream);
    if (streams.length === 2) stream.pipe(stream);
  });
  const slow = channel.open();
  const sent = randomBytes(4 * WINDOW);
  slow.end(sent);
  await expect.poll(() => streams[0]?.readableLength).toBe(WINDOW);
  const quick = channel.open();
  quick.end("there");
  expect((await buffer(quick)).toString()).toBe("there");
  expect(streams[0]?.readableLength).toBe(WINDOW);
  expect((await buffer(streams[0] as Duplex)).equals(sent)).toBe(true);
});

test("HTTP goes through, and a connection that breaks is broken on both sides", async () => {
  const server = createServer((incoming, answer) => {
    if (incoming.url === "/break") incoming.socket.destroy();
    else answer.end(`got ${incoming.url}`);
  }).listen(0, "127.0.0.1");
  open.push({ destroy: () => server.close() });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const channel = await pair((stream) =>
    join(stream, connect({ port, host: "127.0.0.1", allowHalfOpen: true })),
  );
  const get = async (path: string) => {
    const call = request({ path, host: "guest", createConnection: () => channel.open() as never }).end();
    const [answer] = await once(call, "response");
    return (await buffer(answer)).toString();
  };
  expect(await get("/one")).toBe("got /one");
  await expect(get("/break")).rejects.toThrow();
  expect(await get("/two")).toBe("got /two");
  await expect.poll(() => channel.streams).toBe(0);
});

test("no more streams than there may be", async () => {
  const channel = await pair(() => undefined);
  for (let at = 0; at < MAX_STREAMS; at++) channel.open();
  expect(() => channel.open()).toThrow("no stream left");
});

test.each([
  ["opens a stream where it may open none", {}, encodeFrame(1, "open")],
  [
    "opens a stream twice",
    { onStream: () => undefined },
    Buffer.concat([encodeFrame(1, "open"), encodeFrame(1, "open")]),
  ],
  [
    "sends beyond its window",
    { onStream: () => undefined },
    Buffer.concat([
      encodeFrame(1, "open"),
      ...Array.from({ length: 5 }, () => encodeFrame(1, "data", Buffer.alloc(WINDOW / 4))),
    ]),
  ],
  [
    "sends after its end",
    { onStream: () => undefined },
    Buffer.concat([encodeFrame(1, "open"), encodeFrame(1, "end"), encodeFrame(1, "data", Buffer.from("x"))]),
  ],
  [
    "gives credit that was not used",
    { onStream: () => undefined },
    Buffer.concat([encodeFrame(1, "open"), encodeCredit(1, 1)]),
  ],
  [
    "gives no credit, as if it gave some",
    { onStream: () => undefined },
    Buffer.concat([encodeFrame(1, "open"), encodeCredit(1, 0)]),
  ],
  [
    "fills its window with frames of a byte, of which each takes more memory than that",
    { onStream: () => undefined },
    Buffer.concat([
      encodeFrame(1, "open"),
      times(WINDOW / LEAST_COST + 1, encodeFrame(1, "data", Buffer.from("x"))),
    ]),
  ],
  ["sends on and on what is for no stream", {}, times(MAX_STRAYS + 1, encodeFrame(7, "reset"))],
  [
    "opens and resets streams without an end",
    { onStream: () => undefined },
    Buffer.concat(
      Array.from({ length: 4 * MAX_STREAMS + 1 }, (_, at) => [
        encodeFrame(at + 1, "open"),
        encodeFrame(at + 1, "reset"),
      ]).flat(),
    ),
  ],
  ["sends what is no frame", {}, Buffer.alloc(64, 0xff)],
])("the channel ends when the other side %s", async (_what, options, bytes) => {
  const { channel, hostile, ended } = await against(options);
  hostile.write(bytes);
  expect((await ended)?.name).toBe("Error");
  expect(() => channel.open()).toThrow("has ended");
});

test("what comes in pieces of a byte is whole, once it is read: their cost is given back", async () => {
  const streams: Duplex[] = [];
  const channel = await pair((stream) => streams.push(stream));
  const sending = channel.open();
  const sent = randomBytes(3 * (WINDOW / LEAST_COST));
  for (const byte of sent) sending.write(Buffer.from([byte]));
  sending.end();
  await expect.poll(() => streams[0]?.readableLength).toBe(WINDOW / LEAST_COST);
  expect((await buffer(streams[0] as Duplex)).equals(sent)).toBe(true);
});

test("after each piece that came on a wire, others have their turn", async () => {
  const paused: boolean[] = [];
  const { hostile } = await against({
    onStream: () => paused.push(true),
  });
  const wires = open.filter((one): one is Socket => one !== hostile) as Socket[];
  const [left] = wires.slice(-2);
  left?.prependListener("data", () => setImmediate(() => paused.push(left.isPaused())));
  hostile.write(encodeFrame(1, "open"));
  await expect.poll(() => paused).toEqual([true, true]);
  hostile.write(encodeFrame(2, "open"));
  await expect.poll(() => paused).toEqual([true, true, true, true]);
});

test("who opens more streams than there may be has the others refused", async () => {
  const { channel, hostile } = await against({ onStream: () => undefined });
  const decoder = new FrameDecoder();
  const refused: number[] = [];
  hostile.on("data", (bytes: Buffer) => {
    for (const { stream, type } of decoder.push(bytes)) if (type === "reset") refused.push(stream);
  });
  for (let number = 1; number <= MAX_STREAMS + 3; number++) hostile.write(encodeFrame(number, "open"));
  await expect.poll(() => refused).toEqual([MAX_STREAMS + 1, MAX_STREAMS + 2, MAX_STREAMS + 3]);
  expect(channel.streams).toBe(MAX_STREAMS);
});

test("frames of streams that there are not change nothing", async () => {
  const { channel, hostile } = await against();
  const stream = channel.open();
  hostile.write(
    Buffer.concat([encodeFrame(9, "data", Buffer.from("x")), encodeFrame(1, "data", Buffer.from("y"))]),
  );
  hostile.write(encodeFrame(1, "end"));
  expect((await buffer(stream)).toString()).toBe("y");
});

test("settings come before everything else, and leave what follows", async () => {
  const [left, right] = await wire();
  const settings = { PORT: "2000" };
  left.write(Buffer.concat([encodePreface(settings), Buffer.from("rest")]));
  left.end();
  expect(await readPreface(right)).toEqual(settings);
  expect((await buffer(right)).toString()).toBe("rest");
});

test("settings that do not come, or are too long, are an error", async () => {
  const [left, right] = await wire();
  left.end(Buffer.from([0, 0, 0, 9, 1]));
  await expect(readPreface(right)).rejects.toThrow("did not come");
  const [other, long] = await wire();
  other.write(Buffer.alloc(4, 0xff));
  await expect(readPreface(long)).rejects.toThrow("too long");
});

test("more streams than are allowed in all end the channel, although earlier ones are closed", async () => {
  const opened: Duplex[] = [];
  const { hostile, ended } = await against({ most: 3, onStream: (stream) => opened.push(stream) });
  for (let number = 1; number <= 4; number++)
    hostile.write(Buffer.concat([encodeFrame(number, "open"), encodeFrame(number, "reset")]));
  expect((await ended)?.message).toBe("a stream that may not be opened");
  expect(opened).toHaveLength(3);
});
