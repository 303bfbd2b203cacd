/** A worker that is told of a runner that is not there, as of those of a StatefulSet that may grow: a server of the test is another one. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { errorBody, ServiceError } from "@svc/contracts";
import { createLog, loadConfig } from "@svc/service-kit";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { until } from "@svc/test-kit/system/processes";
import { RunnerFleet } from "@svc/worker/runner/fleet";
import { afterAll, beforeAll, expect, it } from "vitest";

const ABSENT = "http://runner-7.runners.invalid:2000";
/** Longer than a runner may be silent until its runs are given up. */
const CUT_OFF_MS = 17_000;

const { privateKey } = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const folder = mkdtempSync(join(tmpdir(), "svc-test-runners-"));
const logFile = join(folder, "log");
let server: Server;
let fleet: RunnerFleet;

beforeAll(async () => {
  server = createServer((request, response) => {
    const isProbe = request.method === "GET";
    const body = isProbe ? { slots: { total: 1, busy: 0 } } : errorBody(new ServiceError("runner_busy"), "");
    request.resume().on("end", () => response.writeHead(isProbe ? 200 : 503).end(JSON.stringify(body)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const there = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = loadConfig("worker", {
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
    SANDBOX_ENDPOINT: `${there},${ABSENT}`,
  });
  fleet = new RunnerFleet(config, { log: createLog("worker", config, openSync(logFile, "w")) });
  await until(() => fleet.counts().away === 1, 10_000);
});
afterAll(async () => {
  await fleet.close();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

it("a run that all refuse is refused as by the runner that is there", async () => {
  const refused = fleet.ask((client) => client.json({ method: "POST", path: "/api/v2/execute" }));
  await expect(refused).rejects.toMatchObject({ code: "runner_busy" });
});

it("a runner that answers, and takes no run, stays left out for longer and longer", async () => {
  const { signal } = new AbortController();
  for (let times = 0; times < 4; times++) {
    await fleet.ask((client) => client.json({ method: "GET", path: "/api/v2/runtimes" }));
    const run = fleet.run(signal, (client) => client.json({ method: "POST", path: "/api/v2/execute" }));
    await expect(run).rejects.toMatchObject({ code: "runner_busy" });
  }
  await wait(1000);
  expect(fleet.counts().busy).toBe(1);
});

it("the log has one line of a runner that is not there, and none of runs that it does not have", async () => {
  await wait(CUT_OFF_MS);
  const lines = readFileSync(logFile, "utf8").split("\n");
  expect(lines.filter((line) => line.includes(ABSENT))).toEqual([expect.stringContaining("runner left out")]);
});
