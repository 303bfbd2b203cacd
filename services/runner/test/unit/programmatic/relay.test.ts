import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { CallHistory } from "@svc/runner/programmatic/call-history";
import { GrowingBuffer } from "@svc/runner/programmatic/growing-buffer";
import { Relay, type RelayOptions } from "@svc/runner/programmatic/relay";
import { afterAll, afterEach, describe, expect, it } from "vitest";

const directory = mkdtempSync(join(tmpdir(), "svc-relay-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const open: Relay[] = [];
afterEach(() => {
  for (const relay of open.splice(0)) relay.close();
});

let count = 0;
async function started(options: Partial<RelayOptions> = {}) {
  const errors: unknown[] = [];
  const failed = Promise.withResolvers<unknown>();
  const relay = new Relay({
    tools: ["add"],
    maxBytes: 1 << 20,
    maxArrivingBytes: 16 << 20,
    maxConnections: 64,
    onCall: (_call, reply) => reply.result("call_001", "1"),
    onActivity: () => undefined,
    // As a program does it: its end closes the relay.
    onError: (error) => {
      errors.push(error);
      relay.close();
      failed.resolve(error);
    },
    ...options,
  });
  open.push(relay);
  const path = join(directory, `${count++}.sock`);
  await relay.listen(path);
  return { relay, path, errors, failed: failed.promise };
}

function request(body: string, { path = "/tool-call", method = "POST", headers = "" } = {}): string {
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
const RAW = "Content-Type: application/vnd.svc.tool-input\r\nX-Tool-Index: 0\r\n";
const envelope = (input: string) => request(`{"tool_name":"add","input":${input}}`);

/** Sends bytes and reads until the relay closes the connection. */
async function sent(path: string, bytes: string): Promise<string> {
  const socket = createConnection(path);
  socket.on("error", () => undefined);
  socket.write(bytes);
  return text(socket).catch(() => "");
}
const statusOf = async (path: string, bytes: string) => Number((await sent(path, bytes)).split(" ")[1]);

const EVERY_MESSAGE: [string, string][] = [
  ["a call", envelope("{}")],
  ["a call by its index", request("{}", { headers: RAW })],
  ["another path", request("{}", { path: "/sessions" })],
  ["another method", request("{}", { method: "DELETE" })],
  ["a body that is not JSON", request("{")],
  ["a body that is too large", request(" ".repeat(2 << 20))],
  ["a body that is nested too deeply", envelope(`{"a":${"[".repeat(100)}${"]".repeat(100)}}`)],
  [
    "a body in chunks",
    "POST /tool-call HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  ],
  ["a request that waits to be continued", request("{}", { headers: "Expect: 100-continue\r\n" })],
  ["an upgrade", request("", { headers: "Connection: Upgrade\r\nUpgrade: websocket\r\n" })],
  ["what is not HTTP", "\x16\x03\x01nonsense\r\n\r\n"],
  ["headers that are too long", request("{}", { headers: `X-Long: ${"x".repeat(8192)}\r\n` })],
];

describe("a relay whose owner throws", () => {
  const thrown = new RangeError("Maximum call stack size exceeded");
  const fails = (): never => {
    throw thrown;
  };

  it.each(EVERY_MESSAGE)(
    "at %s tells its owner, once or more, and leaves other relays alone",
    async (_, bytes) => {
      const other = await started();
      for (const broken of [{ onActivity: fails }, { onCall: fails }]) {
        const { path, errors, failed } = await started(broken);
        const answered = sent(path, bytes);
        if ("onActivity" in broken || /"add"|Index/.test(bytes)) await Promise.race([failed, answered]);
        await answered;
        expect(errors.every((error) => error === thrown)).toBe(true);
      }
      expect(await statusOf(other.path, envelope("{}"))).toBe(200);
      expect(other.errors).toEqual([]);
    },
  );

  it("at a call tells its owner of it and answers nobody any more", async () => {
    const { path, errors, failed } = await started({ onCall: fails });
    const idle = sent(path, "");
    expect(await sent(path, envelope("{}"))).toBe("");
    await failed;
    expect(errors).toEqual([thrown]);
    expect(await idle).toBe("");
  });

  it("at a call that waited for an earlier connection, whose turn comes by a timer, tells its owner", async () => {
    const { path, failed } = await started({ onCall: fails });
    const slow = createConnection(path);
    slow.on("error", () => undefined).write("POST /tool-call HTTP/1.1\r\n");
    void sent(path, envelope("{}"));
    expect(await failed).toBe(thrown);
  });

  it("at a call that is flushed tells its owner, and the one who flushes goes on", async () => {
    const issued = Promise.withResolvers<void>();
    const { relay, path, failed } = await started({ onActivity: issued.resolve, onCall: fails });
    const slow = createConnection(path);
    slow.on("error", () => undefined).write("POST");
    await issued.promise;
    void sent(path, envelope("{}"));
    await relay.freeze();
    relay.flush();
    expect(await failed).toBe(thrown);
  });

  it("says so when its socket cannot be made, and that is all", async () => {
    const { path } = await started();
    const relay = new Relay({
      tools: [],
      maxBytes: 1,
      maxArrivingBytes: 1,
      maxConnections: 1,
      onCall: fails,
      onActivity: fails,
      onError: () => undefined,
    });
    open.push(relay);
    await expect(relay.listen(path)).rejects.toThrow("EADDRINUSE");
  });
});

describe("requests that do not come whole", () => {
  /** Waits until so much is held. */
  const held = (relay: Relay, bytes: number) => expect.poll(() => relay.arrivingBytes).toBe(bytes);

  /** Begins a call of this length; the rest of it comes with `rest`. */
  function begun(path: string, bytes: number) {
    const socket = createConnection(path).on("error", () => undefined);
    const whole = envelope(`{"a":"${"x".repeat(bytes)}"}`);
    const cut = whole.length - 1;
    socket.write(whole.slice(0, cut));
    return { socket, rest: () => socket.write(whole.slice(cut)), body: cut - whole.indexOf("\r\n\r\n") - 4 };
  }

  it("hold so much together, and one more is refused when it has come; what is held is given back", async () => {
    const { relay, path, errors } = await started({ maxArrivingBytes: 2 << 20 });
    const [first, second] = [begun(path, 900_000), begun(path, 900_000)];
    await held(relay, first.body + second.body);
    const third = begun(path, 900_000);
    await expect.poll(() => third.socket.bytesWritten).toBeGreaterThan(900_000);
    await held(relay, first.body + second.body);
    third.rest();
    expect(await text(third.socket)).toMatch(/^HTTP\/1.1 503 .*too many large tool calls are on their way/s);
    first.rest();
    expect(await text(first.socket)).toMatch(/^HTTP\/1.1 200 /);
    await held(relay, second.body);
    second.socket.destroy();
    await held(relay, 0);
    expect(errors).toEqual([]);
  });

  it("hold nothing when they are too large, and still come to their end", async () => {
    const { relay, path } = await started();
    const large = begun(path, 2 << 20);
    await expect.poll(() => large.socket.bytesWritten).toBeGreaterThan(2 << 20);
    await held(relay, 0);
    large.rest();
    expect(await text(large.socket)).toMatch(/^HTTP\/1.1 413 /);
  });

  it("cost their bytes alone, in however small pieces these come", () => {
    const buffer = new GrowingBuffer();
    const before = process.memoryUsage();
    for (let at = 0; at < 1_000_000; at++) buffer.add(Uint8Array.of(at % 251));
    expect(buffer.bytes.length).toBe(1_000_000);
    expect(buffer.bytes[999_999]).toBe(999_999 % 251);
    expect(process.memoryUsage().external - before.external).toBeLessThan(8 << 20);
  });
});

const array = (length: number) => `[${"0,".repeat(length - 1)}0]`;
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("large, deep and odd calls", () => {
  const HISTORIES = {
    "of a first attempt": [],
    "of a repeated program": [
      { call_id: "call_001", name: "add", input_json: "{}", outcome: { result_json: "1" } },
      {
        call_id: "call_002",
        name: "add",
        input_json: `{"a":${array(65_000)}}`,
        outcome: { result_json: "2" },
      },
    ],
  };
  const CALLS: [string, string, number][] = [
    ["no argument", "{}", 200],
    ["65,000 elements", `{"a":${array(65_000)}}`, 200],
    ["as many values as may be", `{"a":${array(199_998)}}`, 200],
    ["240,000 elements", `{"a":${array(240_000)}}`, 413],
    ["80,000 members", `{${Array.from({ length: 80_000 }, (_, at) => `"${at}":{}`).join(",")}}`, 200],
    ["1,000,000 elements", `{"a":${array(1_000_000)}}`, 413],
    ["63 levels", `{"a":${nested(63)}}`, 200],
    ["64 levels", `{"a":${nested(64)}}`, 413],
    ["3,000 levels", `{"a":${nested(3000)}}`, 413],
    ["10,000 levels", `{"a":${nested(10_000)}}`, 413],
    ["100,000 levels", `{"a":${nested(100_000)}}`, 413],
    ["100,000 levels that are never closed", `{"a":${"[".repeat(100_000)}`, 413],
    ["a prototype", '{"__proto__":{"a":1},"constructor":null,"toString":[1]}', 200],
    ["half a character", '{"a":"\\ud800"}', 200],
    ["a number beyond all", '{"a":1e999,"b":-0}', 200],
  ];

  it.each(
    Object.entries(HISTORIES).flatMap(([attempt, history]) =>
      CALLS.map(([what, input, status]) => [what, attempt, input, status, history] as const),
    ),
  )("with %s, %s, are issued or refused with a sentence", async (_what, _attempt, input, status, history) => {
    const calls = new CallHistory({ tools: ["add"], maxCalls: 10, recorded: history });
    const { path, errors } = await started({
      onCall: ({ name, input: given }, reply) => {
        calls.issue(name, given);
        reply.result("call_001", "1");
      },
    });
    const answers = [await sent(path, envelope(input)), await sent(path, request(input, { headers: RAW }))];
    for (const answer of answers) {
      expect(Number(answer.split(" ")[1])).toBe(status);
      if (status === 413) expect(answer).toMatch(/are too large|flatten them|make several calls/);
    }
    expect(errors).toEqual([]);
    expect(calls.made).toBe(status === 200 ? 2 : 0);
  });
});
