/** The API through Caddy and nginx with the files of deploy/proxies: what clients rely on is the same as without a proxy. */

import { request } from "node:https";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api, refTo } from "@svc/test-kit/system/api";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { openStream } from "@svc/test-kit/system/streams";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReverseProxy } from "./support/proxies.ts";
import { SITE, useProxies } from "./support/use-proxies.ts";

const MAX_FILE = 25 * 1024 * 1024;
const APPEAR_MS = slow(20_000);
const { url, instance } = sharedSystem();
const direct = new Api(url);
const { starts, certificate } = useProxies(direct);

describe.each(Object.entries(starts))("through %s", (_name, start) => {
  let proxy: ReverseProxy;
  let api: Api;

  beforeAll(async () => {
    proxy = await start(instance.ports.api);
    api = new Api(proxy.url);
  });

  afterAll(() => proxy?.stop());

  test("a file of the largest size goes in and comes out, and a program reads it", async () => {
    const content = Buffer.alloc(MAX_FILE, "0123456789abcdefg");
    const [file] = await api.upload({ "largest.bin": content });
    if (file === undefined) throw new Error("nothing was stored");
    expect((await api.bytes(file)).equals(content)).toBe(true);
    const code = "import os; print(os.path.getsize('largest.bin'))";
    const { stdout } = await api.exec({ lang: "py", code, files: [refTo(file)] });
    expect(stdout).toBe(`${MAX_FILE}\n`);
  });

  test("what is too large is refused by the API, in its own words", async () => {
    const upload = await api.form("/upload", [{ name: "large.bin", content: Buffer.alloc(MAX_FILE + 1) }]);
    const same = await direct.form("/upload", [{ name: "large.bin", content: Buffer.alloc(MAX_FILE + 1) }]);
    expect([upload.status, upload.refusal.error]).toEqual([same.status, same.refusal.error]);
    const start = await api.tryExec({ lang: "py", code: "#".repeat(9 * 1024 * 1024) });
    expect(start.refusal.error).toBe("request_too_large");
  });

  test("a client that leaves ends its program", async () => {
    const marker = newMarker();
    const client = new AbortController();
    const code = "import time\ntime.sleep(60)";
    const call = api.exec({ lang: "py", code, args: [marker] }, { signal: client.signal });
    call.catch(() => undefined);
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    client.abort();
    await until(
      () => processesWith(marker).length === 0,
      APPEAR_MS,
      () => processesWith(marker),
    );
    await expect(call).rejects.toThrow();
  });

  test("events come as the program writes them, and a reader that leaves ends its program", async () => {
    const marker = newMarker();
    const code = 'import time\nprint("first")\ntime.sleep(60)';
    const answer = await openStream(proxy.url, "/exec", { lang: "py", code, args: [marker] });
    expect((await answer.until(({ event }) => event === "stdout")).data).toEqual({ text: "first\n" });
    expect(processesWith(marker).length).toBeGreaterThan(0);
    answer.leave();
    await until(() => processesWith(marker).length === 0, APPEAR_MS);
  });

  test("the id of a request and the state of its limit arrive, and a slow program is waited for", async () => {
    const headers = { "x-request-id": "through.a:proxy-1" };
    const answer = await api.tryExec(
      { lang: "py", code: "import time\ntime.sleep(2)\nprint('whole')" },
      { headers },
    );
    expect(answer.json()).toMatchObject({ stdout: "whole\n", code: 0 });
    expect(answer.headers.get("x-request-id")).toBe("through.a:proxy-1");
    expect(Number(answer.headers.get("ratelimit-limit"))).toBeGreaterThan(0);
    expect(answer.headers.get("ratelimit-policy")).toMatch(/^\d+;w=\d+$/);
    const refused = await api.tryExec({ lang: "py" }, { headers });
    expect([refused.status, refused.refusal.request_id]).toEqual([400, "through.a:proxy-1"]);
  });

  test("a page of another origin is refused by the API, which has no authentication here", async () => {
    const answer = await api.send("GET", "/files/any", { headers: { origin: "https://elsewhere.example" } });
    expect([answer.status, answer.refusal.error]).toEqual([403, "origin_not_allowed"]);
  });

  test.each(["/metrics", "/v1/metrics", "/%6detrics", "/v1/%2e%2e/metrics", "//metrics", "/v1/./metrics"])(
    "%s is not there",
    async (path) => {
      const answer = await rawGet(proxy, path);
      expect(answer).toMatch(/^HTTP\/1\.1 404 /);
      expect(answer).not.toContain("svc_");
    },
  );
});

test("nginx speaks TLS with the files of its certificate, and the API gets the name of the site as Host", async () => {
  const proxy = await starts.nginx(instance.ports.api);
  try {
    const answer = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      const options = { port: proxy.tlsPort, servername: SITE, ca: certificate().cert };
      const call = request(
        { ...options, host: "127.0.0.1", path: "/v1/files/any", headers: { host: SITE } },
        (response) =>
          void text(response).then((body) => resolve({ status: response.statusCode, body }), reject),
      );
      call.once("error", reject).end();
    });
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body)).toMatchObject({
      error: "origin_not_allowed",
      message: expect.stringContaining("Host"),
    });
  } finally {
    await proxy.stop();
  }
});

/** The answer to a path that is sent as it is written here. */
async function rawGet(proxy: ReverseProxy, path: string): Promise<string> {
  const { hostname, port, host } = new URL(proxy.url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return text(socket);
}
