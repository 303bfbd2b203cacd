/** Executions that a runner refuses before it has begun them, and what its metrics say of them. */
import { type ErrorCode, type ExecuteRequest, newId } from "@svc/contracts";
import { Slots } from "@svc/runner/admission/slots";
import { execute } from "@svc/runner/execution/execute";
import { Runtimes } from "@svc/runner/execution/runtimes";
import type { Call } from "@svc/runner/execution/types";
import { runnerMetrics } from "@svc/runner/metrics";
import { ProgramRegistry } from "@svc/runner/programmatic/program-registry";
import { type ProgrammaticDeps, startProgram } from "@svc/runner/programmatic/rounds";
import { createLog, createRegistry, loadConfig } from "@svc/service-kit";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { expect, it } from "vitest";

const config = loadConfig("runner", {
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
  SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
});
const log = createLog("runner", { ...config, SANDBOX_LOG_LEVEL: "ERROR" });
const command = ["/bin/bash", "{entry}"];
const bash = { language: "bash", version: "5.2.15", entry: "main.sh", command, env: {} };
const ONE_SLOT = { total: 1, queueWaitMs: 60_000 };

function runner(slots: Slots) {
  const registry = createRegistry();
  const runtimes = new Runtimes([{ ...bash, programmatic: { command, env: {} } }]);
  const metrics = runnerMetrics(registry, runtimes.languages);
  const limits = { maxPaused: 2, maxPerPrincipal: 2, longestPauseMs: 60_000 };
  const programs = new ProgramRegistry(limits, metrics, log);
  const deps = { config, overrides: {}, runtimes, slots, metrics, log, programs };
  return { deps: deps as unknown as ProgrammaticDeps, counted: () => countedIn(registry) };
}

/** By outcome, of all languages. */
async function countedIn(registry: ReturnType<typeof createRegistry>): Promise<Record<string, number>> {
  const found = await registry.getSingleMetric("svc_sandbox_executions_total")?.get();
  return Object.fromEntries((found?.values ?? []).map(({ labels, value }) => [labels.outcome, value]));
}

const call = (): Call => ({
  requestId: newId(),
  execId: undefined,
  signal: new AbortController().signal,
  log,
});
const request: ExecuteRequest = { language: "bash", files: [{ name: "main.sh", content: "true" }] };
const ptc = {
  mode: "live" as const,
  execution_id: newId(),
  round: 1,
  tools_json: "[]",
  callback_token: "sealed",
  hash_seed: 1,
  max_calls: 10,
};

const KINDS = {
  plain: (deps: ProgrammaticDeps) => execute(request, call(), deps),
  "with tools": (deps: ProgrammaticDeps) => startProgram({ request, principal: "one" }, ptc, call(), deps),
};

const codeOf = (failed: Promise<unknown>): Promise<ErrorCode> =>
  failed.then(
    () => expect.unreachable("it has no slot"),
    ({ code }) => code,
  );

it.each(Object.entries(KINDS))("an execution (%s) without a slot is none", async (_, begin) => {
  const { deps, counted } = runner(new Slots({ ...ONE_SLOT, queueLimit: 0 }));
  await deps.slots.lease(new AbortController().signal);
  const before = await counted();
  expect(await codeOf(begin(deps))).toBe("runner_busy");
  expect(await counted()).toEqual(before);
});

it.each(Object.entries(KINDS))(
  "nor one (%s) that waits for a slot when the runner ends",
  async (_, begin) => {
    const { deps, counted } = runner(new Slots({ ...ONE_SLOT, queueLimit: 1 }));
    await deps.slots.lease(new AbortController().signal);
    const before = await counted();
    const waiting = codeOf(begin(deps));
    await Promise.resolve();
    deps.slots.close();
    expect(await waiting).toBe("shutting_down");
    expect(await counted()).toEqual(before);
  },
);

it("an installed language has all outcomes from the start, so that the first of each is an increase", async () => {
  const { counted } = runner(new Slots({ ...ONE_SLOT, queueLimit: 0 }));
  expect(await counted()).toMatchObject({ success: 0, execution_error: 0, manifest_error: 0, timeout: 0 });
});
