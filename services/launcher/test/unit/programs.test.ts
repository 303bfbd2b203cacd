/** Programs with tools in guests: the runner of a guest is an HTTP server here, and what the launcher keeps of it is the real thing. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type ExecuteRequest, newId, type PausedResponse, type ResumeRequest } from "@svc/contracts";
import { Slots } from "@svc/runner/admission/slots";
import { Runtimes } from "@svc/runner/execution/runtimes";
import type { Call } from "@svc/runner/execution/types";
import { runnerMetrics } from "@svc/runner/metrics";
import { ProgramRegistry } from "@svc/runner/programmatic/program-registry";
import { createLog, InnerClient, loadConfig, Registry } from "@svc/service-kit";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { expect, onTestFinished, test, vi } from "vitest";
import type { HeldGuest } from "../../src/execution/held-guest.ts";
import { GuestRuns } from "../../src/execution/runs.ts";
import type { Guest } from "../../src/guests/guest.ts";
import { Pool } from "../../src/guests/pool.ts";

const config = loadConfig("launcher", {
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: newSigner().pem,
  SANDBOX_FORWARD_TARGET: "gateway.internal:3190",
  SANDBOX_ADVERTISED_URL: "http://launcher.internal:2000",
});
const log = createLog("launcher", { ...config, SANDBOX_LOG_LEVEL: "ERROR" });

const paused: PausedResponse = {
  paused: true,
  session_id: newId(),
  pending_call_ids: ["call_001"],
  stdout: "",
  stderr: "",
  execution_time: 1,
  tool_calls_made: 1,
  runner_url: "http://guest",
  language: "bash",
  version: "5.2.15",
};

/** A guest whose runner pauses every program that it is asked to run or to resume. `kept`: how many it says that it keeps. */
async function launcher({ kept = 1, slots = 1 } = {}) {
  const asked: string[] = [];
  const runner = createServer((request, answer) => {
    asked.push(request.url ?? "");
    const body = request.method === "GET" ? { slots: { paused: kept } } : paused;
    request.resume().once("end", () => {
      answer.setHeader("content-type", "application/json").end(JSON.stringify(body));
    });
  }).listen(0, "127.0.0.1");
  await once(runner, "listening");
  const baseUrl = `http://127.0.0.1:${(runner.address() as AddressInfo).port}`;
  const runs = new InnerClient({ baseUrl, unreachable: "sandbox_execution_failed" });
  const ended = Promise.withResolvers<string>();
  const guest = {
    runs,
    held: runs,
    ended: ended.promise,
    ready: async () => undefined,
    update: async () => undefined,
    pause: () => undefined,
    resume: () => undefined,
    end: async () => ended.resolve("ended"),
  } as unknown as Guest;
  const pool = new Pool<Guest>({
    boot: async () => guest,
    most: 1,
    ahead: 1,
    booting: 1,
    runsPerGuest: 1,
    maxAgeMs: 3_600_000,
    maxUnusedMs: 3_600_000,
    waitMs: 1000,
    onReady: () => undefined,
    onEnd: () => undefined,
    log,
  });
  await pool.start();
  const registry = new Registry();
  const runMetrics = runnerMetrics(registry, []);
  const limits = { maxPaused: 2, maxPerPrincipal: 2, longestPauseMs: 60_000 };
  const programs = new ProgramRegistry<HeldGuest>(limits, runMetrics, log);
  const command = ["/bin/bash", "{entry}"];
  const runtime = { language: "bash", version: "5.2.15", entry: "main.sh", command, env: {} };
  const guestRuns = new GuestRuns({
    config,
    overrides: {},
    runtimes: new Runtimes([{ ...runtime, programmatic: { command, env: {} } }]),
    slots: new Slots({ total: slots, queueLimit: 0, queueWaitMs: 1000 }),
    pool,
    programs,
    runMetrics,
  });
  onTestFinished(async () => {
    programs.close();
    await pool.close();
    await runs.close();
    runner.close();
  });
  return { runs: guestRuns, programs, asked, registry };
}

const call = (): Call => ({
  requestId: newId(),
  execId: undefined,
  signal: new AbortController().signal,
  log,
});

function replayOf(executionId: string, round: number): ExecuteRequest {
  return {
    language: "bash",
    files: [{ name: "main.sh", content: "lookup" }],
    ptc: {
      mode: "replay",
      execution_id: executionId,
      round,
      tools_json: "[]",
      callback_token: "sealed",
      hash_seed: 1,
      max_calls: 10,
    },
  };
}

const resumeOf = (executionId: string, round: number): ResumeRequest => ({
  session_id: newId(),
  output_session_id: newId(),
  run_timeout: 1000,
  ptc: { answered_call_ids: ["call_001"], execution_id: executionId, round },
});

test("a program that was run again from the top goes on alive at its next calls", async () => {
  const { runs, programs, asked } = await launcher();
  const id = newId();
  await runs.execute({ request: replayOf(id, 2), principal: "one" }, call());
  await runs.resume(resumeOf(id, 3), call());
  await runs.resume(resumeOf(id, 4), call());
  const resume = `/api/v2/executions/${id}/resume`;
  expect(asked).toEqual(["/api/v2/execute", resume, resume]);
  expect(programs.paused).toBe(1);
});

test.each([
  ["ends, when its runner has given up the program", 0],
  ["stays, when its runner keeps the program", 1],
])("a guest that is about to rest %s", async (_, kept) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { runs, programs, asked } = await launcher({ kept });
  await runs.execute({ request: replayOf(newId(), 1), principal: "one" }, call());
  expect(programs.paused).toBe(1);
  vi.advanceTimersByTime(9000);
  vi.useRealTimers();
  await expect.poll(() => asked).toContain("/api/v2/health");
  if (kept === 0) await expect.poll(() => programs.paused).toBe(0);
  else await expect(expect.poll(() => programs.paused, { timeout: 500 }).toBe(0)).rejects.toThrow();
});

test("a program that goes on meanwhile is not given up", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { runs, programs, asked } = await launcher({ kept: 0 });
  const id = newId();
  await runs.execute({ request: replayOf(id, 1), principal: "one" }, call());
  vi.advanceTimersByTime(7000);
  await runs.resume(resumeOf(id, 2), call());
  vi.advanceTimersByTime(2000);
  vi.useRealTimers();
  await sleep(200);
  expect([asked.includes("/api/v2/health"), programs.paused]).toEqual([false, 1]);
});

test("one that gets no slot is no execution", async () => {
  const { runs, registry } = await launcher({ slots: 0 });
  const refused = runs.execute({ request: replayOf(newId(), 1), principal: "one" }, call());
  await expect(refused).rejects.toMatchObject({ code: "runner_busy" });
  expect(await registry.metrics()).not.toContain('outcome="execution_error"');
});
