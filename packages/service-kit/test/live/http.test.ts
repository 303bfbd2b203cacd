import { EventEmitter, once } from "node:events";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { INTERNAL_TOKEN_HEADER, ServiceError } from "@svc/contracts";
import { freePort } from "@svc/test-kit/system/free-ports";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createRegistry,
  type HttpServer,
  httpMetrics,
  InnerClient,
  requireInternalToken,
} from "../../src/index.ts";
import { testApp } from "../support/app.ts";

const LIMIT = 1_000_000;
let app: HttpServer;
let url: URL;
let logged: () => string;
const registry = createRegistry();
const slowCalls = new EventEmitter();

beforeAll(async () => {
  ({ app, logged } = testApp({ bodyLimit: LIMIT, metrics: httpMetrics(registry, "svc_http") }));
  const guard = { onRequest: requireInternalToken(["t".repeat(32)]) };
  app.post("/inner", guard, async (call) => ({ id: call.id }));
  app.post("/open", async () => ({ ok: true }));
  app.get("/slow", async (request) => {
    slowCalls.emit("began");
    await once(request.raw.socket, "close");
    return { ok: true };
  });
  app.get("/begun", (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { "content-length": 100 }).write("begun");
  });
  app.get("/hang", (_request, reply) => void reply.hijack());
  app.get("/strange", (_request, reply) => void reply.code(502).type("text/html").send("<h1>proxy</h1>"));
  app.get("/details", async () => {
    throw new ServiceError("input_unavailable", "of host 10.0.0.7", {
      details: [{ path: "files[0]", problem: "is gone" }],
    });
  });
  app.get(
    "/wrong-details",
    (_request, reply) =>
      void reply.code(400).send({ error: "invalid_request", details: [{ path: 5 }, null, "x"] }),
  );
  url = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
});
afterAll(() => app.close());

const connectionsOf = ({ server }: HttpServer) =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );

/** Sends text as it is and reads until the server closes. */
async function raw(text: string): Promise<string> {
  const socket = connect(Number(url.port), url.hostname);
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  socket.write(text);
  await once(socket, "close");
  return answer;
}

describe("requests that are not HTTP", () => {
  it.each([
    ["GARBAGE\r\n\r\n", 400],
    ["GET / HTTP/9.9\r\n\r\n", 400],
    ["GET / HTTP/1.1\r\nbad header\r\n\r\n", 400],
    ["POST /open HTTP/1.1\r\nhost: a\r\ncontent-length: abc\r\n\r\n", 400],
    ["POST /open HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", 400],
    [`GET / HTTP/1.1\r\nhost: a\r\nx: ${"a".repeat(20_000)}\r\n\r\n`, 431],
  ])("are refused with an error body and a request id: %j", async (text, status) => {
    const answer = await raw(text);
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const { error, message, request_id } = JSON.parse(body) as Record<string, string>;
    expect(error).toBe("invalid_request");
    expect(message).toMatch(/\.$/);
    expect(head).toContain(`x-request-id: ${request_id}`);
  });

  it("are counted, and keep no connection, though the client keeps its side open", async () => {
    await expect.poll(() => connectionsOf(app)).toBe(0);
    const sockets = [
      "GARBAGE\r\n\r\n",
      "POST /open HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ].map((text) => {
      const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
      socket.on("error", () => undefined).resume();
      socket.write(text);
      return socket;
    });
    await Promise.all(sockets.map((socket) => once(socket, "end")));
    await expect.poll(() => connectionsOf(app), { timeout: 10_000 }).toBe(0);
    for (const socket of sockets) socket.destroy();
    expect(await registry.metrics()).toMatch(
      /svc_http_requests_total\{method="unknown",route="unmatched",status="400"\} [1-9]/,
    );
  });

  it("are counted, too, when the framework refuses their address", async () => {
    const refused = async () => {
      const found = await registry.getSingleMetric("svc_http_requests_total")?.get();
      const [one] = (found?.values ?? []).filter(
        ({ labels }) => labels.method === "PUT" && labels.route === "unmatched",
      );
      return one?.value ?? 0;
    };
    const before = await refused();
    expect(await raw("PUT /%zz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 404 /,
    );
    expect(await refused()).toBe(before + 1);
  });

  it("put no error into an answer that has begun: it is cut", async () => {
    const socket = connect(Number(url.port), url.hostname);
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
      if (answer.endsWith("begun")) socket.write("GARBAGE\r\n\r\n");
    });
    socket.on("error", () => undefined);
    socket.write("GET /begun HTTP/1.1\r\nhost: a\r\n\r\n");
    await once(socket, "close");
    expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*begun$/);
  });
});

describe("a client that is still sending when it is refused", () => {
  const send = (path: string, bytes: number, headers: Record<string, string>) =>
    new Promise<{ status: number; body: string }>((resolve, reject) => {
      const outgoing = request(new URL(path, url), { method: "POST", headers }, (answer) => {
        let body = "";
        answer.on("data", (chunk) => {
          body += chunk;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
      });
      outgoing.on("error", reject);
      const chunk = Buffer.alloc(65_536, 32);
      const write = (left: number): void => {
        if (left <= 0) return void outgoing.end();
        outgoing.write(chunk.subarray(0, left), () => write(left - chunk.length));
      };
      write(bytes);
    });

  it.each([
    ["/inner", {}, 401, "unauthorized"],
    ["/nothing", {}, 404, "not_found"],
    ["/slow", {}, 405, "method_not_allowed"],
    ["/open", { "content-type": "text/plain" }, 400, "invalid_content_type"],
    ["/open", { "content-type": "application/json" }, 413, "request_too_large"],
    [
      "/open",
      { "content-type": "application/json", "content-length": String(20_000_000) },
      413,
      "request_too_large",
    ],
  ] as const)("%s %j reads its %i", async (path, headers, status, code) => {
    const answer = await send(path, 20_000_000, headers);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ error: code });
  });
});

describe("a client that reads only after it has sent everything", () => {
  it.each([
    ["POST /inner", "", 401],
    ["POST /nothing", "", 404],
    ["POST /open", "content-type: text/plain\r\n", 400],
    ["POST /open", "content-type: application/json\r\n", 413],
  ])("%s %j still finds its answer", async (line, headers, status) => {
    const bytes = 20_000_000;
    const socket = connect(Number(url.port), url.hostname);
    socket.write(`${line} HTTP/1.1\r\nhost: a\r\ncontent-length: ${bytes}\r\n${headers}\r\n`);
    await sleep(50);
    await new Promise((resolve, reject) => {
      socket.write(Buffer.alloc(bytes, 32), (error) => (error ? reject(error) : resolve(undefined)));
    });
    await sleep(50);
    let answer = "";
    for await (const chunk of socket) answer += chunk;
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });
});

describe("a client that leaves", () => {
  it("is counted as 499", async () => {
    const began = once(slowCalls, "began");
    const socket = connect(Number(url.port), url.hostname);
    socket.write("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n");
    await began;
    socket.destroy();
    await expect
      .poll(() => registry.metrics())
      .toContain('svc_http_requests_total{method="GET",route="/slow",status="499"} 1');
  });
});

describe("calls between components", () => {
  const client = (change: object = {}) =>
    new InnerClient({
      baseUrl: url.origin,
      internalToken: "t".repeat(32),
      unreachable: "upstream_unavailable",
      ...change,
    });

  it("carry the token and the request id", async () => {
    const call = {
      method: "POST",
      path: "/inner",
      requestId: "id-7",
      headers: { "content-type": "application/json" },
      body: "{}",
    } as const;
    expect(await client().json(call)).toEqual({ id: "id-7" });
    const without = client({ internalToken: undefined }).json(call);
    await expect(without).rejects.toMatchObject({ code: "unauthorized", status: 401 });
    expect(logged()).not.toContain(INTERNAL_TOKEN_HEADER);
  });

  it("take over code, status and details of a failure, and keep its words inside", async () => {
    const failed = await client()
      .json({ method: "GET", path: "/details" })
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({
      code: "input_unavailable",
      status: 502,
      message: "An input file is missing or damaged.",
      details: [{ path: "files[0]", problem: "is gone" }],
    });
    expect((failed as Error).cause).toBe("inner answer 502: input_unavailable");
  });

  it.each([
    ["/strange", "internal_error", 502],
    ["/wrong-details", "invalid_request", 400],
    ["/nothing", "not_found", 404],
  ])("an answer of %s in another shape becomes %s", async (path, code, status) => {
    const failed = await client()
      .json({ method: "GET", path })
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({ code, status, details: undefined });
  });

  it("fail with the given code when nobody answers or not in time", async () => {
    const refused = client({ baseUrl: "http://127.0.0.1:1" }).send({ method: "GET", path: "/" });
    await expect(refused).rejects.toMatchObject({ code: "upstream_unavailable" });
    const late = client().send({ method: "GET", path: "/hang", timeoutMs: 100 });
    await expect(late).rejects.toMatchObject({ code: "upstream_unavailable" });
  });

  it("wait for a component that refuses connections as long as they are told, with their bodies whole", async () => {
    const port = await freePort();
    const options = { baseUrl: `http://127.0.0.1:${port}`, refusedMs: 30_000 };
    const body = Readable.from(["one ", "two"]);
    const sent = client(options).send({ method: "PUT", path: "/", body });
    const begin = performance.now();
    const refused = client({ ...options, refusedMs: 200 }).send({ method: "GET", path: "/" });
    await expect(refused).rejects.toMatchObject({ code: "upstream_unavailable" });
    expect(performance.now() - begin).toBeGreaterThan(150);
    const server = createServer(async (request, response) => response.end(`got ${await text(request)}`));
    await once(server.listen(port, "127.0.0.1"), "listening");
    expect(await text((await sent).body)).toBe("got one two");
    server.closeAllConnections();
    server.close();
  });

  it("end with the caller's own reason when the caller gives up", async () => {
    const reason = new Error("the caller left");
    const controller = new AbortController();
    const sent = client().send({ method: "GET", path: "/hang", signal: controller.signal });
    setTimeout(() => controller.abort(reason), 50);
    await expect(sent).rejects.toBe(reason);
  });
});
