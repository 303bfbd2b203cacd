/**
 * Requests that no client would send, to every route of the document: each ends alone. None is a fault of ours, nothing
 * escapes from a handler, and other callers are served as before.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { canaryKey, RUNTIMES_KEY } from "@svc/contracts";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OK } from "../support/consumer.ts";
import { type Replicas, startReplicas } from "../support/replicas.ts";

const DOCUMENT = new URL("../../../../docs/openapi.json", import.meta.url);
const { paths } = JSON.parse(readFileSync(DOCUMENT, "utf8")) as { paths: Record<string, object> };
const ROUTES = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
);
const AN_ID = "A".repeat(21);
const INSTALLED = ["python", "bash"].map((language) => ({ language, version: "3.1.1", aliases: [] }));

let made: Replicas;
const escaped: unknown[] = [];
const note = (error: unknown) => void escaped.push(error);
beforeAll(async () => {
  process.on("uncaughtExceptionMonitor", note).on("unhandledRejection", note);
  made = await startReplicas(1, { ...OPEN_LIMITS, TRUST_PROXY: "1", BODY_TIMEOUT_MS: "500" });
  await made.redis.set(RUNTIMES_KEY, JSON.stringify(INSTALLED));
  for (const kind of ["python", "other"] as const) await made.redis.set(canaryKey(kind), "1");
  await made.consume({ work: async () => OK });
});
afterAll(async () => {
  await made.stop();
  process.off("uncaughtExceptionMonitor", note).off("unhandledRejection", note);
  expect(escaped).toEqual([]);
});

/** Sends bytes as they are. `end`: what becomes of the connection then. Gives what came back. */
function send(bytes: string, end: "wait" | "half" | "reset"): Promise<string> {
  const socket = connect(Number(new URL(made.urls[0] ?? "").port), "127.0.0.1");
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", () => undefined);
  socket.write(Buffer.from(bytes, "latin1"), () => {
    if (end === "reset") socket.resetAndDestroy();
    if (end === "half") socket.end();
  });
  return new Promise((resolve) => socket.once("close", () => resolve(answer)));
}

const TEXTS = [
  "\x7f",
  "\xff\xfe",
  "%",
  "%00",
  "%ff",
  "\t",
  "=;,",
  "__proto__",
  '"',
  "bytes=",
  "a".repeat(8000),
];
const HEADERS = [
  "accept",
  "accept-encoding",
  "authorization",
  "content-type",
  "content-encoding",
  "cookie",
  "expect",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "idempotency-key",
  "range",
  "user-agent",
  "x-codeapi-expected-profile",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-librechat-code-request-id",
  "x-request-id",
  "x-api-key",
];
const BODIES = [
  "",
  "{",
  "{}",
  "[]",
  "null",
  "\xff",
  '{"continuation_token":{}}',
  '{"continuation_token":"a"}',
  "--b\r\n\r\n",
  "--b--",
];
const TYPES = ["application/json", "multipart/form-data; boundary=b", "multipart/form-data", "text/plain"];

const target = (path: string, id = AN_ID) => path.replaceAll(/\{\w+\}/g, id);
const head = (method: string, url: string, lines: readonly string[] = []) =>
  [`${method} ${url} HTTP/1.1`, "host: localhost", "connection: close", ...lines, "", ""].join("\r\n");

async function expectServed(): Promise<void> {
  expect((await fetch(`${made.urls[0]}/health`)).status).toBe(200);
  expect(escaped).toEqual([]);
}

function expectNoFault(answer: string, what: string): void {
  // 503: a valid start of a program with tools, whose components are not here.
  if (answer.includes('"sandbox_setup_failed"')) return;
  expect(answer, what.slice(0, 300)).toMatch(/^HTTP\/1\.1 [1234]\d\d /);
}

describe.each(ROUTES)("%s %s", (method, path) => {
  test("with hostile headers", async () => {
    const requests = HEADERS.flatMap((name) =>
      TEXTS.map((text) => head(method, target(path), [`${name}: ${text}`])),
    );
    await Promise.all(requests.map(async (bytes) => expectNoFault(await send(bytes, "wait"), bytes)));
    await expectServed();
  });

  test("with hostile paths and queries", async () => {
    const urls = ["%00", "%", "%2e%2e", "%ff", "%2f", "a".repeat(5000), "\xff", "\x7f", "__proto__"].flatMap(
      (text) => [
        target(path, text),
        `${target(path)}/${text}`,
        `${target(path)}?${text}=${text}`,
        `${target(path)}?kind=${text}&kind=${text}`,
        `${target(path)}?kind=skill&id=${text}&version=${text}`,
        `${target(path)}?detail=${text}`,
      ],
    );
    for (const url of urls) expectNoFault(await send(head(method, url), "wait"), url);
    await expectServed();
  });

  test("with bodies that are broken, end early, or are never sent", async () => {
    const requests = TYPES.flatMap((type) =>
      BODIES.flatMap((body) => [
        head(method, target(path), [`content-type: ${type}`, `content-length: ${body.length}`]) + body,
        head(method, target(path), [`content-type: ${type}`, `content-length: ${body.length + 9}`]) + body,
        `${head(method, target(path), [`content-type: ${type}`, "transfer-encoding: chunked"])}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        `${head(method, target(path), [`content-type: ${type}`, "transfer-encoding: chunked"])}zz\r\n`,
      ]),
    );
    await Promise.all(requests.map(async (bytes) => expectNoFault(await send(bytes, "wait"), bytes)));
    await Promise.all(requests.map((bytes) => send(bytes, "reset")));
    await Promise.all(requests.map((bytes) => send(bytes, "half")));
    await expectServed();
  });
});

test("announcements of results that no one waits for end nothing", async () => {
  const channels = (await made.redis.call("PUBSUB", "CHANNELS", "svc:results:*")) as string[];
  expect(channels).not.toEqual([]);
  for (const channel of channels) {
    for (const text of ["", "{", "null", "__proto__", "a", "[".repeat(100_000)]) {
      expect(await made.redis.publish(channel, text)).toBe(1);
    }
  }
  const answer = await fetch(`${made.urls[0]}/exec`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"lang":"py","code":"1"}',
  });
  expect(answer.status).toBe(200);
  await expectServed();
});
