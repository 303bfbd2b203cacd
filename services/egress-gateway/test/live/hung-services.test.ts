/** What the gateway answers while a component behind it takes connections and says nothing. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type LedgerRecord, ledgerKey } from "@svc/capabilities";
import { newId } from "@svc/contracts";
import { asRunner, type Call, type Gateway, startGateway } from "@svc/test-kit/components/gateway";
import { startToolGateway, type ToolGateway } from "@svc/test-kit/components/gateway-tool-calls";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const SOON = { EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS: "300" };

describe("a file server that hangs", () => {
  let made: Gateway;
  beforeAll(async () => {
    made = await startGateway(SOON);
  });
  afterAll(() => made.stop());

  it("is upstream_timeout for reads, lists and writes, and served again when it goes on", async () => {
    const runner = asRunner(await made.register([await made.upload("a", "1")]));
    process.kill(made.files.pid, "SIGSTOP");
    const id = newId();
    const answers = await Promise.all(
      [runner.read(), runner.list(), runner.write("x", { id })].map((call) => made.call(call)),
    ).finally(() => process.kill(made.files.pid, "SIGCONT"));
    for (const answer of answers) {
      expect([answer.status, answer.json().error]).toEqual([504, "upstream_timeout"]);
    }
    expect((await made.call(runner.read())).status).toBe(200);
    expect((await made.call(runner.write("x", { id }))).status).toBe(200);
  });
});

/** Stores what it is sent, and answers after so long. */
async function startLateFileServer(lateMs: number) {
  let stored = 0;
  const server = createServer((request, response) => {
    request.resume().once("end", async () => {
      stored++;
      await sleep(lateMs);
      const file = { size: 1, etag: "e".repeat(64), lastModified: new Date(0).toISOString() };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(file));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, stored: () => stored, stop: () => void server.close().closeAllConnections() };
}

describe("a file server whose storage is slow", () => {
  it("is waited for longer when content is written than for other answers", async ({ onTestFinished }) => {
    const upstreamMs = 4000;
    const files = await startLateFileServer(1.4 * upstreamMs);
    onTestFinished(files.stop);
    const made = await startGateway({
      EGRESS_GATEWAY_FILE_SERVER_URL: files.url,
      EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS: String(upstreamMs),
    });
    onTestFinished(made.stop);
    const runner = asRunner(await made.register([]));
    expect((await made.call(runner.write("x"))).status).toBe(200);
    expect(files.stored()).toBe(1);
  });
});

describe("a file server that stores a file and never ends its answer", () => {
  it("is upstream_timeout, and the file stays charged", async ({ onTestFinished }) => {
    const server = createServer((request, response) => {
      request.resume().once("end", () => response.writeHead(200).write("{"));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close().closeAllConnections());
    const made = await startGateway({
      ...SOON,
      EGRESS_GATEWAY_FILE_SERVER_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    });
    onTestFinished(made.stop);
    const grant = await made.register([]);
    const answer = await made.call({ ...asRunner(grant).write("x"), signal: AbortSignal.timeout(5000) });
    expect([answer.status, answer.json().error]).toEqual([504, "upstream_timeout"]);
    const store = new Redis(made.redis.socket);
    onTestFinished(() => store.disconnect());
    const record = JSON.parse((await store.get(ledgerKey(grant.grant_id))) ?? "null") as LedgerRecord;
    expect(record.uploaded_bytes).toBe(1);
  });
});

describe("a runner whose transfers stand still", () => {
  const UPSTREAM_MS = 500;
  /** After which the gateway cuts it. */
  const STANDSTILL_MS = 2 * UPSTREAM_MS + 5000;
  const LARGE = 30 * 2 ** 20;
  let made: Gateway;
  beforeAll(async () => {
    made = await startGateway({ EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS: String(UPSTREAM_MS) });
  });
  afterAll(() => made.stop());

  /** Sends the head of a request and the beginning of its body. */
  async function begun({ path, method, headers }: Call, more = {}, body = ""): Promise<Socket> {
    const { hostname, port } = new URL(made.gateway.url);
    const socket = connect(Number(port), hostname).on("error", () => undefined);
    const head = Object.entries({ ...headers, host: "gateway", ...more }).map((line) => line.join(": "));
    socket.write(`${method} ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n${body}`);
    return socket;
  }

  it("is cut in an upload, of which nothing stays", async () => {
    const before = await made.files.storedFiles();
    const socket = await begun(
      asRunner(await made.register([])).write(""),
      { "content-length": "1000" },
      "x",
    );
    const beganMs = performance.now();
    await once(socket.resume(), "close");
    expect(performance.now() - beganMs).toBeGreaterThan(STANDSTILL_MS - 100);
    await expect.poll(() => made.files.storedFiles()).toEqual(before);
  });

  it("is cut in a download", async () => {
    const runner = asRunner(await made.register([await made.upload("a", Buffer.alloc(LARGE))]));
    const socket = await begun(runner.read());
    await once(socket, "readable");
    // Node looks once more whether anything moved.
    await sleep(2.5 * STANDSTILL_MS);
    let bytes = 0;
    socket.on("data", (chunk) => {
      bytes += chunk.length;
    });
    await once(socket, "close");
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(LARGE);
  });

  it("is not cut where an upload or a download moves slowly", async () => {
    const runner = asRunner(await made.register([await made.upload("a", Buffer.alloc(LARGE))]));
    const upload = await begun(runner.write(""), { "content-length": "5", connection: "close" });
    for (let sent = 0; sent < 5; sent++) {
      await sleep(STANDSTILL_MS / 3);
      upload.write("x");
    }
    expect(await text(upload)).toMatch(/^HTTP\/1.1 200 /);
    const download = await begun(runner.read(), { connection: "close" });
    let bytes = 0;
    for await (const chunk of download) {
      const before = bytes;
      bytes += chunk.length;
      if (Math.floor(before / 2 ** 23) < Math.floor(bytes / 2 ** 23)) await sleep(STANDSTILL_MS / 3);
    }
    expect(bytes).toBeGreaterThan(LARGE);
  });
});

describe("a tool call server that hangs", () => {
  let made: ToolGateway;
  beforeAll(async () => {
    made = await startToolGateway({ ...SOON, TOOL_CALL_REQUEST_TIMEOUT: "700" });
  });
  afterAll(() => made.stop());

  it("is upstream_timeout for calls that are recorded, and for one that waited as long as it may", async () => {
    const execution = await made.start();
    process.kill(made.server.pid, "SIGSTOP");
    const call = { tool_name: "add", input: {} };
    const answers = await Promise.all([
      made.record(execution, [{ call_id: "call_001", call }]),
      made.call(execution, "call_002"),
    ]).finally(() => process.kill(made.server.pid, "SIGCONT"));
    for (const { status, body } of answers) expect([status, body.error]).toEqual([504, "upstream_timeout"]);
  });
});
