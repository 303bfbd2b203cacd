/**
 * A guest that says anything at all on its three wires. Whatever comes, in any pieces: what the launcher asked for settles when the guest
 * is gone, nothing is thrown outside of it, what is held for it is bounded, and another guest notices nothing.
 *
 * TEST_FUZZ_SECONDS goes on for so long, with other attacks each time.
 */
import { once } from "node:events";
import { createServer as createRunner } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type Duplex, Transform } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { InnerClient } from "@svc/service-kit";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { join } from "../../src/channel/bridge.ts";
import { Channel, MAX_STREAMS, WINDOW } from "../../src/channel/channel.ts";
import { Control } from "../../src/channel/control.ts";
import { encodeCredit, encodeFrame, TYPES } from "../../src/channel/frames.ts";

const seconds = Number(process.env.TEST_FUZZ_SECONDS ?? 0);
const MOST = 200;
const SETTLE_MS = 20_000;

let wires: Server;
let gateway: Server;
const atGateway = new Set<Socket>();
beforeAll(async () => {
  wires = createServer().listen(0, "127.0.0.1");
  // Answers whatever comes with a few bytes for each, as a gateway does that refuses.
  gateway = createServer({ allowHalfOpen: true }, (socket) => {
    atGateway.add(socket);
    socket.on("close", () => atGateway.delete(socket));
    socket.on("error", () => undefined);
    socket.on("data", () => socket.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
    socket.on("end", () => socket.end());
  }).listen(0, "127.0.0.1");
  await Promise.all([once(wires, "listening"), once(gateway, "listening")]);
});
afterAll(() => {
  wires.close();
  gateway.close();
});

/** As a guest's runner answers. */
const runner = createRunner((request, answer) => {
  request.resume().once("end", () => answer.end(JSON.stringify({ stdout: "x".repeat(3000) })));
});
runner.on("clientError", (_error, socket) => socket.destroy());

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const toGateway = () => connect({ port: portOf(gateway), host: "127.0.0.1", allowHalfOpen: true });

/** The launcher's end, which closes with the other as those of QEMU's process do, and the guest's. */
async function wire(): Promise<[Socket, Socket]> {
  const near = connect({ port: portOf(wires), host: "127.0.0.1" });
  const [far] = (await once(wires, "connection")) as [Socket];
  far.on("error", () => undefined);
  // QEMU's wires wait for nothing either.
  for (const end of [near, far]) end.setNoDelay();
  return [near, far];
}

type Act =
  | { do: "bytes"; bytes: Uint8Array }
  | { do: "frame"; type: (typeof TYPES)[number]; stream: number; length: number }
  | { do: "broken"; type: number; stream: number; length: number; claimed: number }
  | { do: "credit"; stream: number; bytes: number }
  | { do: "opens"; count: number }
  | { do: "say"; stream: number; text: string }
  | { do: "deaf" | "hear" | "wait" | "end" };

const HTTP = [
  "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
  "HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
  `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(4000)}`,
  "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
  "\0".repeat(100),
];

const stream = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.nat({ max: 2 ** 32 - 1 }));
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("bytes" as const), bytes: fc.uint8Array({ maxLength: 64 }) }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("frame" as const),
      type: fc.constantFrom(...TYPES),
      stream,
      length: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(65_535, 65_536)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("broken" as const),
      type: fc.nat({ max: 255 }),
      stream,
      length: fc.oneof(fc.nat({ max: 40 }), fc.constantFrom(65_536, 65_537)),
      claimed: fc.constantFrom(0, 1, -1, 2 ** 23),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("credit" as const),
      stream,
      bytes: fc.oneof(fc.nat({ max: WINDOW }), fc.nat({ max: 2 ** 32 - 1 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("opens" as const), count: fc.nat({ max: 3 * MAX_STREAMS }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("say" as const), stream, text: fc.constantFrom(...HTTP) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("deaf" as const, "hear" as const, "wait" as const, "end" as const),
    }),
  },
);

/** The bytes of an act; undefined: it is none of bytes. */
function bytesOf(one: Act, opened: { last: number }): Buffer | undefined {
  switch (one.do) {
    case "bytes":
      return Buffer.from(one.bytes);
    case "frame":
      if (one.type === "credit") return encodeCredit(one.stream, one.length);
      return encodeFrame(one.stream, one.type, Buffer.alloc(one.type === "data" ? one.length : 0, "x"));
    case "broken": {
      const head = encodeFrame(one.stream, "data", Buffer.alloc(one.length, "x"));
      head.writeUInt8(one.type, 4);
      head.writeUIntBE(Math.max(0, Math.min(2 ** 24 - 1, one.length + one.claimed)), 5, 3);
      return head;
    }
    case "credit":
      return encodeCredit(one.stream, one.bytes);
    case "opens":
      return Buffer.concat(Array.from({ length: one.count }, () => encodeFrame(++opened.last, "open")));
    case "say":
      return encodeFrame(one.stream, "data", Buffer.from(one.text));
    default:
      return undefined;
  }
}

async function attack(far: Socket, acts: readonly Act[], pieces: number): Promise<void> {
  const opened = { last: 0 };
  for (const one of acts) {
    const bytes = bytesOf(one, opened);
    if (bytes !== undefined)
      for (let at = 0; at < bytes.length; at += pieces) far.write(bytes.subarray(at, at + pieces));
    else if (one.do === "deaf") far.pause();
    else if (one.do === "hear") far.resume();
    else if (one.do === "end") far.end();
    else await sleep(1);
  }
}

const within = <Value>(what: string, promise: Promise<Value>): Promise<Value> =>
  Promise.race([
    promise,
    sleep(SETTLE_MS, undefined, { ref: false }).then(() => {
      throw new Error(`not in time: ${what}`);
    }),
  ]);

/** Requests over a channel: each is settled in the end, whatever was answered. */
function ask(channel: Channel, count: number): { settled: Promise<unknown>; client: InnerClient } {
  const client = new InnerClient({
    baseUrl: "http://guest",
    unreachable: "sandbox_execution_failed",
    connections: 4,
    connect: () => channel.open(),
  });
  const one = async () => {
    const body = Buffer.alloc(300_000, "b");
    const answer = await client.send({ method: "POST", path: "/api/v2/execute", body, timeoutMs: 0 });
    await answer.body.dump();
  };
  return { settled: Promise.allSettled(Array.from({ length: count }, one)), client };
}

const attacks = fc.record({
  requests: fc.array(act, { maxLength: 30 }),
  gateway: fc.array(act, { maxLength: 30 }),
  control: fc.array(act, { maxLength: 5 }),
  pieces: fc.constantFrom(1 << 20, 1 << 20, 1 << 20, 1000, 7),
});

type Attacks = typeof attacks extends fc.Arbitrary<infer Value> ? Value : never;

async function survives({ requests, gateway: toIt, control, pieces }: Attacks) {
  // One after the other: a connection belongs to the wire that was asked for last.
  const [near, far] = await wire();
  const [nearGateway, farGateway] = await wire();
  const [nearControl, farControl] = await wire();
  const ends = [near, nearGateway, nearControl];
  const streams: Duplex[] = [];
  const ended = Promise.withResolvers<void>();
  const over = () => ended.resolve();
  const channel = new Channel(near, { onEnd: over });
  const outward = new Channel(nearGateway, {
    onStream: (one) => {
      streams.push(one);
      join(one, toGateway());
    },
    most: MOST,
    onEnd: over,
  });
  const clock = new Control(nearControl, over);
  const { settled, client } = ask(channel, 3);
  const updated = clock.update(SETTLE_MS / 2).catch(() => undefined);
  await Promise.all([
    attack(far, requests, pieces),
    attack(farGateway, toIt, pieces),
    attack(farControl, control, pieces),
  ]);
  expect(streams.filter((one) => !one.destroyed).length).toBeLessThanOrEqual(MAX_STREAMS);
  expect(streams.length).toBeLessThanOrEqual(MOST);
  for (const one of streams) {
    expect(one.readableLength).toBeLessThanOrEqual(WINDOW);
    expect(one.writableLength).toBeLessThanOrEqual(2 * WINDOW);
  }
  for (const end of [far, farGateway, farControl]) end.destroy();
  await within("the end of the channels", ended.promise);
  for (const one of [channel, outward]) one.end();
  await within("the requests", settled);
  await within("the update", updated);
  await within("the client", client.close());
  expect(channel.streams + outward.streams).toBe(0);
  for (const end of ends) end.destroy();
}

const mutations = fc.record({
  /** At these bytes, counted over all that the guest sends. */
  at: fc.uniqueArray(fc.nat({ max: 20_000 }), { maxLength: 4 }),
  how: fc.constantFrom("flip" as const, "drop" as const, "twice" as const, "cut" as const),
  pieces: fc.constantFrom(1 << 20, 1000, 7),
});
type Mutations = typeof mutations extends fc.Arbitrary<infer Value> ? Value : never;

/** What a guest's runner answers, with its bytes changed in some places. */
function mutated(to: Socket, { at, how, pieces }: Mutations): Transform {
  let seen = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const parts: Buffer[] = [];
      let from = 0;
      for (const place of [...at].sort((a, b) => a - b)) {
        const index = place - seen;
        if (index < from || index >= chunk.length) continue;
        parts.push(chunk.subarray(from, index));
        const byte = chunk.subarray(index, index + 1);
        if (how === "flip") parts.push(Buffer.from([(byte[0] ?? 0) ^ 0x41]));
        else if (how === "twice") parts.push(byte, byte);
        else if (how === "cut") to.end();
        from = index + 1;
      }
      parts.push(chunk.subarray(from));
      seen += chunk.length;
      const bytes = Buffer.concat(parts);
      for (let index = 0; index < bytes.length; index += pieces)
        this.push(bytes.subarray(index, index + pieces));
      done();
    },
  });
}

async function survivesMutations(one: Mutations): Promise<void> {
  const [near, far] = await wire();
  const [back, guest] = await wire();
  const ended = Promise.withResolvers<void>();
  const channel = new Channel(near, { onEnd: () => ended.resolve() });
  const honest = new Channel(guest, { onStream: (stream) => runner.emit("connection", stream) });
  far.pipe(back);
  back.pipe(mutated(far, one)).pipe(far);
  const { settled, client } = ask(channel, 6);
  // An answer whose length was changed never ends.
  await Promise.race([settled, ended.promise, sleep(200)]);
  for (const end of [far, back]) end.destroy();
  await within("the end of the channel", ended.promise);
  await within("the requests", settled);
  await within("the client", client.close());
  expect(channel.streams).toBe(0);
  honest.end();
}

/** Another guest's channel, over which bytes go to and fro all the time. */
async function bystander() {
  const [near, far] = await wire();
  const channel = new Channel(near);
  new Channel(far, { onStream: (one) => one.pipe(one) });
  return {
    echo: async () => {
      const one = channel.open();
      one.end("hello");
      let said = "";
      for await (const bytes of one) said += bytes;
      expect(said).toBe("hello");
    },
    end: () => channel.end(),
  };
}

const how = seconds > 0 ? { numRuns: 1e9, interruptAfterTimeLimit: seconds * 1000 } : { numRuns: 400 };

test(
  "a conversation in which some bytes are changed, are missing or come twice",
  async () => {
    await fc.assert(fc.asyncProperty(mutations, survivesMutations), { ...how, timeout: 10 * SETTLE_MS });
  },
  (seconds + 600) * 1000,
);

test(
  "whatever a guest says, its requests settle, others notice nothing, and nothing is left",
  async () => {
    const other = await bystander();
    await fc.assert(
      fc.asyncProperty(attacks, async (one) => {
        await survives(one);
        await within("another guest", other.echo());
      }),
      { ...how, timeout: 10 * SETTLE_MS },
    );
    other.end();
    await expect.poll(() => atGateway.size).toBe(0);
  },
  (seconds + 600) * 1000,
);
