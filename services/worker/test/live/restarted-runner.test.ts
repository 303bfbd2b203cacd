/** A runner that is away for longer than other components are waited for, as while it finishes long runs and starts again. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { errorBody, type Job, ServiceError } from "@svc/contracts";
import { createLog, createRegistry, InnerClient, loadConfig } from "@svc/service-kit";
import { jobOf, resumeOf, unsealedGrantOf } from "@svc/test-kit/components/messages";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { freePort } from "@svc/test-kit/system/free-ports";
import { Redis } from "ioredis";
import { describe, type TestContext, test } from "vitest";
import { Grants } from "../../src/grants/grants.ts";
import { workerMetrics } from "../../src/health/metrics.ts";
import { processJob } from "../../src/round/process.ts";
import { AWAY_MS } from "../../src/round/retry-policy.ts";
import { Runner } from "../../src/runner/client.ts";
import { RunnerFleet } from "../../src/runner/fleet.ts";

const LATER_MS = AWAY_MS + 3000;
const { privateKey } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

async function listen({ onTestFinished }: TestContext, handler: RequestListener, port = 0): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => handler(request, response));
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answer =
  (status: number, body: object): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
const STARTS = answer(503, errorBody(new ServiceError("starting_up"), ""));
const RAN = answer(200, {
  session_id: "label",
  stdout: "ran\n",
  stderr: "",
  code: 0,
  signal: null,
  message: null,
  status: null,
  wall_time: 1,
  cpu_time: 1,
  memory: 1,
  language: "python",
  version: "3.11",
  files: [],
  limits: { run_timeout_ms: 1, memory_bytes: 1 },
  timings: { setup_ms: 1, run_ms: 1, collect_ms: 1 },
  session_state_persisted: false,
  session_state_restore_failed: false,
});

/** Has a worker do a job on the runner at this address. */
async function work(
  context: TestContext,
  runner: string,
  job: Job,
  queueWaitMs: number,
  env: Record<string, string> = {},
) {
  const gateway = new InnerClient({
    baseUrl: await listen(context, answer(200, unsealedGrantOf(job.execution_id))),
    unreachable: "upstream_unavailable",
  });
  const config = loadConfig("worker", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
    SANDBOX_ENDPOINT: runner,
    JOB_QUEUE_WAIT_MS: String(queueWaitMs),
    ...env,
  });
  const log = createLog("worker", config);
  const grants = new Grants(gateway, config, log, workerMetrics(createRegistry()).stages);
  const fleet = new RunnerFleet(config, { log });
  const redis = new Redis({ lazyConnect: true });
  context.onTestFinished(async () => {
    redis.disconnect();
    await grants.close();
    await Promise.all([fleet.close(), gateway.close()]);
  });
  const deps = { config, log, redis, grants, runner: new Runner(config, fleet), sessions: undefined };
  return processJob({ job, queueMs: 0, cancelled: new AbortController().signal }, deps);
}

describe.concurrent("a job", () => {
  test("waits for a runner that refuses connections, as for a slot", async (context) => {
    const { expect } = context;
    const port = await freePort();
    const began = performance.now();
    const starts = setTimeout(() => void listen(context, RAN, port), LATER_MS);
    context.onTestFinished(() => clearTimeout(starts));
    const result = await work(context, `http://127.0.0.1:${port}`, jobOf(), 60_000);
    expect(result).toMatchObject({ ok: true, answer: { stdout: "ran\n" } });
    expect(performance.now() - began).toBeGreaterThan(LATER_MS - 100);
  });

  test("waits for a runner that starts", async (context) => {
    const { expect } = context;
    const readyMs = performance.now() + LATER_MS;
    const runner = await listen(context, (...call) => (performance.now() < readyMs ? STARTS : RAN)(...call));
    expect(await work(context, runner, jobOf(), 60_000)).toMatchObject({ ok: true });
  });

  test("has its whole time, however long it waited for its runner", async (context) => {
    const { expect } = context;
    const readyMs = performance.now() + 4000;
    const runner = await listen(context, (...call) => {
      if (performance.now() < readyMs) STARTS(...call);
      else setTimeout(() => RAN(...call), 1500);
    });
    // Together less than the wait.
    const env = {
      SANDBOX_COMPILE_TIMEOUT: "500",
      JOB_PRIME_ALLOWANCE_MS: "500",
      JOB_POSTPROCESS_ALLOWANCE_MS: "500",
      JOB_WAIT_GRACE_MS: "500",
    };
    const result = await work(context, runner, jobOf({ run_timeout: 500 }), 60_000, env);
    expect(result).toMatchObject({ ok: true });
  });

  test("has not started when the time for that is over", async (context) => {
    const { expect } = context;
    const runner = `http://127.0.0.1:${await freePort()}`;
    const result = await work(context, runner, jobOf(), 1000);
    expect(result).toMatchObject({ ok: false, error: { code: "sandbox_setup_failed", status: 503 } });
  });

  test("goes back to the queue where nobody waits for it", async (context) => {
    const { expect } = context;
    const runner = await listen(context, STARTS);
    const result = await work(context, runner, jobOf({ kept: 60_000 }), 60_000);
    expect(result).toMatchObject({ ok: false, error: { code: "queue_saturated" } });
  });

  test.for(["dns", "srv"])("goes back to the queue while DNS (%s) names no runner", async (how, context) => {
    const { expect } = context;
    const job = jobOf({ kept: 60_000 });
    const env = { SVC_RUNNER_DISCOVERY: how };
    const result = await work(context, "http://runners.invalid:2000", job, 60_000, env);
    expect(result).toMatchObject({ ok: false, error: { code: "queue_saturated" } });
  });

  test("of a paused program waits no longer for its one runner than for other components", async (context) => {
    const { expect } = context;
    const runner = `http://127.0.0.1:${await freePort()}`;
    const job = resumeOf();
    const resume = { ...job.resume, runner_url: runner } as NonNullable<Job["resume"]>;
    const began = performance.now();
    const result = await work(context, runner, { ...job, resume }, 60_000);
    expect(result.ok).toBe(false);
    expect(performance.now() - began).toBeLessThan(2 * AWAY_MS);
  });
});
