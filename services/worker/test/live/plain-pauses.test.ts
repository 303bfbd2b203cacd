/** A run without tools on a runner that anybody may have taken over: a server of the test is its runner and its gateway. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { createLog, createRegistry, InnerClient, loadConfig } from "@svc/service-kit";
import { jobOf, unsealedGrantOf } from "@svc/test-kit/components/messages";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { Grants } from "../../src/grants/grants.ts";
import { workerMetrics } from "../../src/health/metrics.ts";
import { processJob } from "../../src/round/process.ts";
import { Runner } from "../../src/runner/client.ts";
import { RunnerFleet } from "../../src/runner/fleet.ts";

const job = jobOf();

interface Asked {
  runs: number;
  registered: number;
  revoked: number;
}

/** Grants what is asked for, and answers every run with a pause. */
async function pausingServer(): Promise<{ address: string; asked: Asked }> {
  const asked: Asked = { runs: 0, registered: 0, revoked: 0 };
  let address = "";
  const server = createServer(async (request, response) => {
    const body = (await json(request).catch(() => ({}))) as { ends?: unknown[] };
    asked.revoked += body.ends?.length ?? 0;
    const isRun = request.url?.endsWith("/execute");
    if (isRun) asked.runs++;
    if (request.url === "/internal/egress-grants") asked.registered++;
    const answer = isRun ? pause(address) : unsealedGrantOf(job.execution_id);
    response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address, asked };
}

const pause = (runner_url: string) => ({
  paused: true,
  session_id: "label",
  pending_call_ids: ["call_001"],
  stdout: "",
  stderr: "",
  execution_time: 1,
  tool_calls_made: 1,
  runner_url,
  language: "python",
  version: "3.11",
  limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
});

it("a run without tools that is answered with a pause has failed, and no further round is prepared for it", async () => {
  const { address, asked } = await pausingServer();
  const { privateKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const config = loadConfig("worker", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
    SANDBOX_ENDPOINT: `${address}/api/v2`,
  });
  const log = createLog("worker", config);
  const gateway = new InnerClient({ baseUrl: address, unreachable: "upstream_unavailable" });
  const { stages } = workerMetrics(createRegistry());
  const grants = new Grants(gateway, config, log, stages);
  const fleet = new RunnerFleet(config, { log });
  const redis = new Redis({ lazyConnect: true });
  onTestFinished(async () => {
    redis.disconnect();
    await Promise.all([fleet.close(), gateway.close()]);
  });
  const deps = { config, log, redis, grants, runner: new Runner(config, fleet), sessions: undefined };
  const cancelled = new AbortController().signal;
  const result = await processJob({ job, queueMs: 0, cancelled }, deps);
  await grants.close();
  expect(result).toMatchObject({ ok: false, error: { code: "sandbox_execution_failed" } });
  // It is repeated once, as a run that broke is, with a grant of its own.
  expect(asked).toEqual({ runs: 2, registered: 2, revoked: 2 });
});
