/** What the API learns of a client through Caddy and nginx with the files of deploy/proxies, and what a client can make up. */
import { type IncomingHttpHeaders, request } from "node:http";
import { text } from "node:stream/consumers";
import { Api } from "@svc/test-kit/system/api";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReverseProxy } from "./support/proxies.ts";
import { svc } from "./support/svc.ts";
import type { Upstream } from "./support/upstream.ts";
import { useProxies, useUpstream } from "./support/use-proxies.ts";

const system = sharedSystem();
/** The proxies call the API from 127.0.0.1. */
const CLIENT = "127.0.0.2";
const FORGED = {
  "x-forwarded-for": "203.0.113.66",
  "x-forwarded-proto": "https",
  "x-forwarded-host": "elsewhere.example",
  "x-forwarded-port": "443",
  "x-real-ip": "203.0.113.66",
  forwarded: "for=203.0.113.66;proto=https;host=elsewhere.example",
  "true-client-ip": "203.0.113.66",
};
const PATH = `/v1/files/${"a".repeat(21)}`;

const { starts } = useProxies(new Api(system.url));
let trusting: SecondApi;

beforeAll(async () => {
  trusting = await startSecondApi(system, { ...system.environment, TRUST_PROXY: "1" });
});
afterAll(async () => {
  expect(await trusting?.stop()).toBe(0);
});

interface Seen {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** GET from an address of its own. */
function get(url: string, headers: Readonly<Record<string, string>>): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, localAddress: CLIENT, agent: false }, (response) => {
      const { statusCode: status, headers: shown } = response;
      text(response).then((body) => resolve({ status, headers: shown, body }), reject);
    });
    sent.once("error", reject).end();
  });
}

/** The address that the API's log has for a request. */
async function loggedAddress(url: string, headers: Readonly<Record<string, string>>): Promise<unknown> {
  const { headers: shown } = await get(url, headers);
  const id = String(shown["x-request-id"]);
  const found = async () => {
    const { stdout } = await svc(["logs", "--json", "--request", id], system.environment);
    return stdout.split("\n").filter(Boolean);
  };
  await expect.poll(found).toHaveLength(1);
  return (JSON.parse((await found())[0] as string) as { address: unknown }).address;
}

const originOf = ({ url }: { url: string }) => new URL(url).origin;

describe.each(Object.entries(starts))("through %s", (_name, start) => {
  let proxy: ReverseProxy;
  let trusted: ReverseProxy;

  beforeAll(async () => {
    proxy = await start(system.instance.ports.api);
    trusted = await start(Number(new URL(trusting.url).port));
  });
  afterAll(async () => {
    await proxy?.stop();
    await trusted?.stop();
  });

  test.each([
    ["a client that says nothing", {}],
    ["a client that makes up where it comes from", FORGED],
  ])("with TRUST_PROXY=1 the log has the address of %s", async (_who, headers) => {
    expect(await loggedAddress(`${originOf(trusted)}${PATH}`, headers)).toBe(CLIENT);
  });

  test("without TRUST_PROXY the log has the proxy's address, whatever a client makes up", async () => {
    for (const headers of [{}, FORGED]) {
      expect(await loggedAddress(`${originOf(proxy)}${PATH}`, headers)).toBe("127.0.0.1");
    }
  });

  test("no header of a client changes an answer", async () => {
    for (const behind of [proxy, trusted]) {
      const [plain, forged] = await Promise.all(
        [{}, FORGED].map(async (headers) => {
          const id = { "x-request-id": "the-same" };
          const {
            status,
            headers: shown,
            body,
          } = await get(`${originOf(behind)}${PATH}`, { ...headers, ...id });
          const { date, ...stable } = shown;
          for (const name of ["ratelimit-remaining", "ratelimit-reset"]) delete stable[name];
          return { status, stable, body };
        }),
      );
      expect(forged).toEqual(plain);
    }
  });

  test("a page of another origin stays refused, however it is forwarded", async () => {
    const headers = { ...FORGED, "x-forwarded-host": "localhost", host: "elsewhere.example" };
    for (const behind of [proxy, trusted]) {
      const { status, body } = await get(`${originOf(behind)}${PATH}`, headers);
      // Caddy itself has no site of that name, and answers with an empty page.
      if (body !== "") expect([status, JSON.parse(body).error]).toEqual([403, "origin_not_allowed"]);
    }
  });
});

test("an API that is reached past its proxy logs the address of the connection, or what trusting a proxy believes", async () => {
  expect(await loggedAddress(`${originOf(system)}${PATH}`, FORGED)).toBe(CLIENT);
  expect(await loggedAddress(`${originOf(trusting)}${PATH}`, {})).toBe(CLIENT);
  // Why docs/deploy.md wants the API on loopback.
  expect(await loggedAddress(`${originOf(trusting)}${PATH}`, FORGED)).toBe("203.0.113.66");
});

describe.each(Object.entries(starts))("what %s tells of a client", (_name, start) => {
  let upstream: Upstream;
  let proxy: ReverseProxy;
  useUpstream(start, (made) => {
    ({ upstream, proxy } = made);
  });

  test.each([
    ["a client that says nothing", {}],
    ["a client that makes things up", FORGED],
  ])("is its own, from %s", async (_who, headers) => {
    const { origin, host } = new URL(proxy.url);
    const arrived = upstream.next();
    const answered = get(`${origin}/any`, { ...headers, "x-request-id": "kept" });
    const [{ headers: told }, response] = await arrived;
    response.end();
    expect((await answered).status).toBe(200);
    expect(told).toMatchObject({
      host,
      "x-request-id": "kept",
      "x-forwarded-for": CLIENT,
      "x-forwarded-proto": "http",
      "x-forwarded-host": host,
    });
  });
});
