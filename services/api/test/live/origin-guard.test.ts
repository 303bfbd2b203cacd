/** Where nobody has to prove who they are, a web page that reaches the API through its visitor's browser is refused. */
import { request } from "node:http";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OK } from "../support/consumer.ts";
import { FORM_TYPE, formBytes } from "../support/file-api.ts";
import { type IdentityApi, startIdentityApi } from "../support/identity-api.ts";
import { type Replicas, startReplicas } from "../support/replicas.ts";

let made: Replicas;
let listed: Replicas;
let ran = 0;
beforeAll(async () => {
  made = await startReplicas(1, OPEN_LIMITS);
  listed = await startReplicas(1, { ...OPEN_LIMITS, SVC_ALLOWED_HOSTS: "svc.internal,10.0.0.7,[fd00::1]" });
  await made.consume({
    work: async () => {
      ran++;
      return OK;
    },
  });
});
afterAll(async () => {
  await made.stop();
  await listed.stop();
});

interface Call {
  method?: string;
  path: string;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

function send(url: string, { method = "POST", path, body, headers = {} }: Call): Promise<[number, string]> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: "127.0.0.1", method, path, headers }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => resolve([answer.statusCode ?? 0, text]));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const PROGRAM = {
  path: "/v1/exec",
  body: '{"lang":"py","code":"1"}',
  headers: { "content-type": "application/json" },
};
const FORM = {
  path: "/v1/upload",
  body: formBytes([{ filename: "a.txt", body: "a" }]),
  headers: { "content-type": FORM_TYPE },
};
const AN_ID = "A".repeat(21);
const ROUTES: [string, Call][] = [
  ["a program", PROGRAM],
  ["a program with tools", { ...PROGRAM, path: "/v1/exec/programmatic" }],
  ["a cancellation", { ...PROGRAM, path: "/v1/exec/programmatic/cancel", body: '{"request_id":"r"}' }],
  ["a form, which needs no preflight", FORM],
  ["a form of many files", { ...FORM, path: "/v1/upload/batch" }],
  ["a download", { method: "GET", path: `/v1/download/${AN_ID}/${AN_ID}` }],
  ["a list", { method: "GET", path: `/v1/files/${AN_ID}` }],
  ["metadata", { method: "GET", path: `/v1/sessions/${AN_ID}/objects/${AN_ID}` }],
  ["a deletion", { method: "DELETE", path: `/v1/files/${AN_ID}/${AN_ID}` }],
  ["health", { method: "GET", path: "/v1/health" }],
  ["metrics", { method: "GET", path: "/v1/metrics" }],
  ["a preflight", { method: "OPTIONS", path: "/v1/exec" }],
];

describe("without authentication", () => {
  const at = (call: Call, headers: Record<string, string>, url = made.urls[0] ?? "") =>
    send(url, { ...call, headers: { ...call.headers, ...headers } });
  const expectRefused = ([status, text]: [number, string]) => {
    expect(status).toBe(403);
    expect(JSON.parse(text)).toMatchObject({ error: "origin_not_allowed" });
  };

  test.each(ROUTES)("%s is refused under a name that was pointed here", async (_name, call) => {
    expectRefused(await at(call, { host: "attacker.example" }));
    expectRefused(await at(call, { host: "attacker.example:3112" }));
  });

  test.each(ROUTES)("%s is refused from another site's page", async (_name, call) => {
    expectRefused(await at(call, { origin: "http://attacker.example", "sec-fetch-site": "cross-site" }));
    expectRefused(await at(call, { origin: "null" }));
  });

  test.each(ROUTES)(
    "%s is refused where another site's page has it fetched without an origin",
    async (_name, call) => {
      expectRefused(await at(call, { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }));
      const embedded = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" };
      expectRefused(await at(call, { "sec-fetch-site": "cross-site", ...embedded }));
      const page = { host: "svc.internal", "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" };
      expectRefused(await at(call, page, listed.urls[0]));
    },
  );

  test("what is refused does not count, and a link, the service's own pages and this machine's are served", async () => {
    const counted = () => made.redis.keys("svc:limit:fetches:*");
    const call = { method: "GET", path: "/v1/openapi.json" };
    expect(await counted()).toEqual([]);
    expectRefused(await at(call, { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }));
    expect(await counted()).toEqual([]);
    const link = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    for (const headers of [
      { "sec-fetch-site": "cross-site", ...link },
      { "sec-fetch-site": "none", ...link },
      { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" },
      { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" },
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", origin: "http://localhost:8000" },
      { "sec-fetch-mode": "cors" },
    ]) {
      const [status] = await at(call, headers);
      expect([headers, status]).toEqual([headers, 200]);
    }
    expect(await counted()).toHaveLength(1);
    expectRefused(await at(FORM, { "sec-fetch-site": "cross-site", ...link }));
  });

  test("no program ran for any of them", () => {
    expect(ran).toBe(0);
  });

  test.each([
    "localhost.attacker.example",
    "127.0.0.1.attacker.example",
    "localhost@attacker.example",
    "attacker.example/localhost",
    "attacker.example#localhost",
    "attacker.example?localhost",
    "1.2.3.4",
    "0.0.0.0",
    "[::]",
    "localhost:99999",
    "local host",
    "svc.internal",
  ])("the host %j is not this machine", async (host) => {
    const [status, text] = await at({ method: "GET", path: "/v1/health" }, { host });
    expect([status, text]).toEqual([403, expect.stringContaining("origin_not_allowed")]);
    expectRefused(await at({ method: "GET", path: "/v1/health" }, { origin: `http://${host}` }));
  });

  test.each(["localhost", "LOCALHOST:3112", "127.0.0.1", "127.0.0.1:1", "127.9.9.9:80", "[::1]:3112"])(
    "the host %s is",
    async (host) => {
      expect((await at(PROGRAM, { host }))[0]).toBe(200);
      expect((await at(FORM, { host, origin: `http://${host}` }))[0]).toBe(200);
      expect((await at(FORM, { host, origin: `https://${host}` }))[0]).toBe(200);
    },
  );

  test.each(["svc.internal", "SVC.internal:8080", "10.0.0.7:3112", "[fd00::1]"])(
    "%s is where it is listed",
    async (host) => {
      const url = listed.urls[0] ?? "";
      const call = { method: "GET", path: "/v1/health" };
      expect((await at(call, { host }, url))[0]).toBe(200);
      expect((await at(call, { origin: `http://${host}` }, url))[0]).toBe(200);
      expectRefused(await at(call, { host: "x.svc.internal" }, url));
    },
  );
});

describe("with authentication", () => {
  let api: IdentityApi;
  beforeAll(async () => {
    api = await startIdentityApi();
  });
  afterAll(() => api.stop());

  test("the token decides, under whatever name", async () => {
    const headers = { host: "svc.example", origin: "https://chat.example" };
    expect((await send(api.url, { ...PROGRAM, headers: { ...PROGRAM.headers, ...headers } }))[0]).toBe(401);
    const authorization = `Bearer ${api.signer.mint()}`;
    const signed = { ...PROGRAM.headers, ...headers, authorization };
    expect((await send(api.url, { ...PROGRAM, headers: signed }))[0]).toBe(200);
  });
});
