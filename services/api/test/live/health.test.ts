import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { canaryKey, RUNTIMES_KEY } from "@svc/contracts";
import { VERSION } from "@svc/service-kit";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type Replicas, startReplicas } from "../support/replicas.ts";

let made: Replicas;
afterEach(() => made.stop());

const ask = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${made.urls[0]}${path}`, { headers });
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at single fields
  return { status: answer.status, body: (await answer.json()) as any };
};
const install = (...languages: string[]) =>
  made.redis.set(RUNTIMES_KEY, JSON.stringify(languages.map((language) => ({ language }))));
const AT = Date.UTC(2026, 0, 31, 10);

describe("readiness", () => {
  it("needs an execution through each queue that an installed language needs", async () => {
    made = await startReplicas(1);
    const canary = async () => {
      const { status, body } = await ask("/ready");
      return [status, body.checks.canary];
    };
    expect(await canary()).toEqual([503, false]);
    await made.redis.set(canaryKey("python"), String(AT));
    expect(await canary(), "no runtime is known").toEqual([503, false]);
    await install("python");
    expect(await canary()).toEqual([200, true]);
    await install("python", "bash");
    expect(await canary(), "the other queue is dead").toEqual([503, false]);
    await made.redis.set(canaryKey("other"), String(AT));
    expect(await canary()).toEqual([200, true]);
  });
});

it("what the workers told, and nobody can read, is no fault of Redis", async () => {
  made = await startReplicas(1);
  await made.redis.set(RUNTIMES_KEY, "{");
  expect((await ask("/ready")).body.reasons).toEqual({ canary: "the check failed" });
});

describe("many questions at once", () => {
  it("ask the file server few times", async () => {
    let asked = 0;
    const fileServer = createServer((request, response) => {
      if (request.url === "/ready") asked++;
      response.end("{}");
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void fileServer.close());
    await once(fileServer, "listening");
    const { port } = fileServer.address() as AddressInfo;
    made = await startReplicas(1, { FILE_SERVER_URL: `http://127.0.0.1:${port}` });
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask("/ready")));
    expect(answers.map(({ body }) => body.checks.file_server)).toEqual(answers.map(() => true));
    expect(asked).toBeLessThan(50);
  });
});

describe("health", () => {
  it("tells the version", async () => {
    made = await startReplicas(1);
    expect(await ask("/health")).toEqual({ status: 200, body: { status: "ok", version: VERSION } });
  });

  it("without authentication tells why a check failed, and of nothing else", async () => {
    made = await startReplicas(1);
    await install("python");
    const ready = await ask("/ready");
    expect(ready).toMatchObject({ status: 503, body: { checks: { canary: false, redis: true } } });
    expect(ready.body.reasons).toEqual({ canary: "no execution went through in the last minute (python)" });
    await made.redis.set(canaryKey("python"), String(AT));
    expect((await ask("/ready")).body).not.toHaveProperty("reasons");
  });

  it("in detail tells callers with a token the checks and their times", async () => {
    const signer = newSigner();
    const keys = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
    made = await startReplicas(1, keys);
    await install("python", "bash");
    await made.redis.set(canaryKey("python"), String(AT));
    const authorization = `Bearer ${signer.mint()}`;
    expect((await ask("/health/detailed")).status).toBe(401);
    const { status, body } = await ask("/health/detailed", { authorization });
    expect(status).toBe(503);
    const check = { ok: true, ms: expect.any(Number) };
    expect(body).toEqual({
      status: "not_ready",
      version: VERSION,
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      checks: {
        redis: check,
        file_server: check,
        clock: check,
        canary: {
          ...check,
          ok: false,
          reason: "no execution went through in the last minute (other)",
          last_success: { python: "2026-01-31T10:00:00.000Z", other: null },
        },
        descriptors: check,
        running: check,
      },
    });
    await made.redis.set(canaryKey("other"), String(AT));
    expect((await ask("/health/detailed", { authorization })).status).toBe(200);
  });
});
