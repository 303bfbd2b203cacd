/** An answer that is read as a whole is not waited for without end. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { askPeer, InnerClient } from "../../src/index.ts";

const TIMEOUT_MS = 200;
let server: Server;
let client: InnerClient;

beforeAll(async () => {
  server = createServer((request, answer) => {
    const isSlow = request.url === "/slow";
    answer.writeHead(request.url === "/refused" ? 503 : 200).write('{"a":');
    if (isSlow) void sleep(3 * TIMEOUT_MS).then(() => answer.end("1}"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  client = new InnerClient({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    unreachable: "upstream_unavailable",
    late: "upstream_timeout",
    timeoutMs: TIMEOUT_MS,
  });
});
afterAll(async () => {
  await client.close();
  server.closeAllConnections();
  server.close();
});

it("one whose body does not come is late, and its connection is closed", async () => {
  await expect(client.json({ method: "GET", path: "/stuck" })).rejects.toMatchObject({
    code: "upstream_timeout",
    cause: { code: "UND_ERR_BODY_TIMEOUT" },
  });
  expect(await askPeer(client, "/stuck", TIMEOUT_MS)).toBeUndefined();
  const open = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  await expect.poll(open).toBe(0);
});

it("of a refusal the status is all there is", async () => {
  await expect(client.json({ method: "GET", path: "/refused" })).rejects.toMatchObject({ status: 503 });
});

it("a caller with a signal decides itself how long it waits, and so does one who reads a stream", async () => {
  const { signal } = new AbortController();
  expect(await client.json({ method: "GET", path: "/slow", signal })).toEqual({ a: 1 });
  const { body } = await client.send({ method: "GET", path: "/slow" });
  expect(await body.text()).toBe('{"a":1}');
  const late = client.json({ method: "GET", path: "/stuck", signal: AbortSignal.timeout(TIMEOUT_MS) });
  await expect(late).rejects.toMatchObject({ code: "upstream_unavailable" });
});
