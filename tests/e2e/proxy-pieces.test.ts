/**
 * Bodies and answers go through Caddy and nginx with the files of deploy/proxies piece by piece. The next piece is sent only
 * when the one before has arrived: a proxy that held one back would wait for ever.
 */
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { Api, downloadPath } from "@svc/test-kit/system/api";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReverseProxy } from "./support/proxies.ts";
import { type Gate, startGate, type Upstream } from "./support/upstream.ts";
import { type StartProxy, useProxies, useUpstream } from "./support/use-proxies.ts";

const system = sharedSystem();
const direct = new Api(system.url);
const { starts } = useProxies(direct);
const DIRECT: StartProxy = async (port) => ({
  url: `http://127.0.0.1:${port}/v1`,
  stop: async () => undefined,
});

/** What has come of a body so far. */
class Arriving {
  #bytes = Buffer.alloc(0);
  #look: () => void = () => undefined;
  readonly ended: Promise<void>;

  constructor(message: IncomingMessage) {
    this.ended = new Promise((resolve, reject) => {
      message.once("end", resolve).once("error", reject);
    });
    message.on("data", (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#look();
    });
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  /** Settles when so many bytes are there. */
  async atLeast(length: number): Promise<void> {
    while (this.#bytes.length < length) {
      await new Promise<void>((resolve) => {
        this.#look = resolve;
      });
    }
  }
}

const answerOf = (sent: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    sent.once("response", resolve).once("error", reject);
  });

const PIECES = ["data: one\n\n", ": still there\n\n", "data: two\n\n", "data: three\n\n"];

describe.each(Object.entries(starts))("through %s", (_name, start) => {
  let upstream: Upstream;
  let proxy: ReverseProxy;
  useUpstream(start, (made) => {
    ({ upstream, proxy } = made);
  });

  test.each(["text/event-stream", "application/json; charset=utf-8"])(
    "an answer of %s without a length comes piece by piece",
    async (type) => {
      const arrived = upstream.next();
      const sent = request(`${proxy.url}/any`, { agent: false }).end();
      const [, response] = await arrived;
      response.writeHead(200, { "content-type": type });
      response.flushHeaders();
      const answer = await answerOf(sent);
      const body = new Arriving(answer);
      let written = "";
      for (const piece of PIECES) {
        response.write(piece);
        written += piece;
        await body.atLeast(written.length);
      }
      response.end();
      await body.ended;
      expect(body.bytes.toString()).toBe(written);
    },
  );

  test("a body goes on while it comes", async () => {
    const arrived = upstream.next();
    const sent = request(`${proxy.url}/any`, { method: "POST", agent: false });
    let written = "";
    let body: Arriving | undefined;
    for (const piece of PIECES) {
      sent.write(piece);
      written += piece;
      body ??= new Arriving((await arrived)[0]);
      await body.atLeast(written.length);
    }
    sent.end();
    await body?.ended;
    (await arrived)[1].end("{}");
    const answer = await answerOf(sent);
    answer.resume();
    expect([answer.statusCode, body?.bytes.toString()]).toEqual([200, written]);
  });
});

describe("a file whose bytes come from its storage in pieces", () => {
  const SIZE = 1024 * 1024;
  const PIECE = 64 * 1024;
  /** Caddy keeps as much of an answer whose length it knows. */
  const KEPT = 4096;
  const content = Buffer.alloc(SIZE, "0123456789abcdefg");
  let gate: Gate;
  let api: SecondApi;
  let path: string;

  beforeAll(async () => {
    const [file] = await direct.upload({ "pieces.bin": content });
    if (file === undefined) throw new Error("nothing was stored");
    path = downloadPath(file);
    gate = await startGate(system.instance.ports["file-server"]);
    const { instance, environment } = system;
    const ports = { ...instance.ports, "file-server": gate.port };
    api = await startSecondApi({ instance: { ...instance, ports } }, environment);
  });
  afterAll(async () => {
    gate?.pass(Number.POSITIVE_INFINITY);
    expect(await api?.stop()).toBe(0);
    await gate?.stop();
  });

  test.each(Object.entries({ "without a proxy": DIRECT, ...starts }))(
    "%s arrives in pieces",
    async (_name, start) => {
      const proxy = await start(Number(new URL(api.url).port));
      try {
        gate.hold();
        const sent = request(`${proxy.url}${path}`, { agent: false }).end();
        gate.pass(PIECE);
        const answer = await answerOf(sent);
        const body = new Arriving(answer);
        // The head of the storage's answer is part of what passes.
        const headBytes = 2 * KEPT;
        for (let passed = PIECE; passed < SIZE; passed += PIECE) {
          await gate.holds();
          await body.atLeast(passed - headBytes);
          expect(body.bytes.length).toBeLessThan(passed);
          gate.pass(PIECE);
        }
        gate.pass(Number.POSITIVE_INFINITY);
        await body.ended;
        expect(answer.headers["content-length"]).toBe(String(SIZE));
        expect(body.bytes.equals(content)).toBe(true);
      } finally {
        await proxy.stop();
      }
    },
  );
});
