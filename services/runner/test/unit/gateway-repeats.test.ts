/** Calls of a run to a gateway that refuses: repeated for a while, but not each of many files anew. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { errorBody, ServiceError } from "@svc/contracts";
import { GatewayClient, type RunGateway } from "@svc/runner/gateway";
import { afterAll, beforeAll, expect, it, vi } from "vitest";

const calls: string[] = [];
let isFull = true;
let status = 503;
/** How long each refusal seems to take. */
let tookMs = 0;
let seemsMs = 0;
const server = createServer((request, response) => {
  calls.push(request.url?.split("/").at(-1) ?? "");
  request.resume().once("end", () => {
    if (!isFull) return response.end("{}");
    seemsMs += tookMs;
    const refusal = new ServiceError("storage_unavailable");
    return response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify(errorBody(refusal, "r")));
  });
});
let gateway: GatewayClient;
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  gateway = new GatewayClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(async () => {
  await gateway.close();
  server.close();
});

const newRun = (): RunGateway => ({
  grant: "grant",
  requestId: "request",
  signal: new AbortController().signal,
});
const store = (run: RunGateway, id: string) =>
  gateway.store(run, "session", { id, name: id, size: 1, contentType: "text/plain" }, async () => "x");
const REFUSAL = { code: "storage_unavailable" };

it.each([502, 503])(
  "storage that stays away (%i) is waited for once in a run, until it is back",
  async (how) => {
    [status, isFull] = [how, true];
    calls.length = 0;
    const run = newRun();
    await Promise.all(
      ["first", "other"].map((id) =>
        expect(store(id === "first" ? run : newRun(), id)).rejects.toMatchObject(REFUSAL),
      ),
    );
    expect(calls.splice(0).sort()).toEqual([...Array(7).fill("first"), ...Array(7).fill("other")]);
    for (const id of ["second", "third"]) await expect(store(run, id)).rejects.toMatchObject(REFUSAL);
    expect(calls.splice(0)).toEqual(["second", "third"]);
    isFull = false;
    await store(run, "fourth");
    isFull = true;
    calls.length = 0;
    await expect(store(run, "fifth")).rejects.toMatchObject(REFUSAL);
    expect(calls).toEqual(Array(7).fill("fifth"));
  },
);

it("storage that is slow to refuse is asked for no more than about a minute", async ({ onTestFinished }) => {
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + seemsMs);
  onTestFinished(() => clock.mockRestore());
  [isFull, tookMs] = [true, 25_000];
  calls.length = 0;
  await expect(store(newRun(), "slow")).rejects.toMatchObject(REFUSAL);
  expect(calls).toHaveLength(4);
});
