import { type RunningComponent, startComponent } from "@svc/test-kit/components/component";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const METRICS_TOKEN = newSecret();
let redis: PrivateRedis;
let server: RunningComponent;

beforeAll(async () => {
  redis = await startRedis();
  server = await startComponent("tool-call-server", {
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_METRICS_TOKEN: METRICS_TOKEN,
    REDIS_URL: redis.url,
    TOOL_CALL_SERVER_PORT: "0",
  });
});
afterAll(async () => {
  await server.kill();
  await redis.stop();
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}${path}`, { headers });

describe("the tool call server", () => {
  it("is healthy with its store, says so without it, and recovers by itself", async () => {
    const healthy = await get("/health");
    expect(healthy.status).toBe(200);
    expect(await healthy.json()).toEqual({ status: "healthy", redis: true });
    await redis.kill();
    const unhealthy = await get("/health");
    expect(unhealthy.status).toBe(503);
    expect(await unhealthy.json()).toEqual({ status: "unhealthy", redis: false });
    await redis.start();
    await expect.poll(async () => (await get("/health")).status).toBe(200);
  });

  it("gives its metrics to a caller with the token", async () => {
    expect((await get("/metrics")).status).toBe(401);
    const answer = await get("/metrics", { authorization: `Bearer ${METRICS_TOKEN}` });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain("process_cpu_seconds_total");
  });

  it("knows no other path", async () => {
    for (const path of ["/", "/tool-results", "/sessions/x/y"]) {
      expect((await get(path)).status).toBe(404);
    }
  });

  it("ends on SIGTERM", async () => {
    await server.kill("SIGTERM");
    await expect(get("/health")).rejects.toThrow();
  });
});
