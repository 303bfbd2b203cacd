/**
 * The query of docs/operate.md names the stage in which a system is slow, each slowed in turn. promtool asks it, word by word, of what
 * the components told before and after, as if an hour lay between what is usual and what is slow: no scrape is late or early.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ROOT } from "@svc/cli/instance";
import type { ComponentName } from "@svc/cli/topology";
import { type FileRef, objectRecordKey } from "@svc/contracts";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { NO_CANARY, OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { scrapeOf, sumOf } from "@svc/test-kit/system/scrape";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { differences } from "./support/rule-tests.ts";
import { openStore } from "./support/store.ts";

const [, QUERY = ""] =
  /```promql\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, "docs/operate.md"), "utf8")) ?? [];
const WITH_STAGES = ["api", "worker", "runner"] as const;
const SEEN_MS = 60_000;
const CONCURRENCY = 4;
const USUAL_RUNS = 3;

let system: System;
let api: Api;
let input: FileRef;
/** What the components told before and after the usual runs. */
let began: Told;
let usual: Told;
/** How long a stage is held up: much more than a usual run takes, all of it. */
let slowMs: number;

/** Counters by their series, with the label that the scrape configuration adds. */
type Told = ReadonlyMap<string, number>;

async function told(): Promise<Told> {
  const counters = WITH_STAGES.map(async (component) => {
    const { samples } = await scrapeOf(system.instance, component);
    return samples
      .filter(({ name }) => /^svc_stage_seconds_(sum|count)$/.test(name))
      .map(({ name, labels: { stage }, value }): [string, number] => [
        `${name}{component="${component}",stage="${stage}"}`,
        value,
      ]);
  });
  return new Map((await Promise.all(counters)).flat());
}

const bash = (code: string, more: ExecInput = {}): ExecInput => ({ lang: "bash", code, ...more });
const reads = () => bash("cat input.txt", { files: [input] });
const writes = () => bash("echo 1 > made.txt");
const whole = () => bash("cat input.txt > made.txt", { files: [input] });

beforeAll(async () => {
  system = await startSystem({
    env: {
      ...OPEN_LIMITS,
      ...ONE_BY_ONE,
      ...NO_CANARY,
      OTHER_CONCURRENCY: String(CONCURRENCY),
      SANDBOX_MAX_CONCURRENT_JOBS: "1",
      SANDBOX_WARM_START: "off",
    },
  });
  api = new Api(system.url);
  input = await api.stage("input.txt", "the input");
  // First runs are slow, and a counter begins with its first run.
  await api.exec(whole());
  began = await told();
  const beganMs = performance.now();
  for (let run = 0; run < USUAL_RUNS; run++) await api.exec(whole());
  slowMs = 3000 + Math.min(12_000, (3 * (performance.now() - beganMs)) / USUAL_RUNS);
  usual = await told();
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const counted = async (component: (typeof WITH_STAGES)[number], name: string, labels = {}) =>
  sumOf(await scrapeOf(system.instance, component), name, labels);
const inSlot = async () => (await counted("runner", "svc_sandbox_slots", { state: "busy" })) === 1;
const inWork = (jobs: number) => async () => (await counted("worker", "svc_active_jobs")) === jobs;

/** Those that keep jails ready take runs by themselves. None is made while jaild is stopped. */
function keepersOf(jaild: number): number[] {
  const isKeeper = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(system.instance.jailSocket);
    } catch {
      return false;
    }
  };
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(jaild));
  return pids.filter(isKeeper).map(Number);
}

function send(signal: "SIGSTOP" | "SIGCONT", pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // A keeper whose run was over ended just before.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Stops a component until a run has been waiting for it: nothing else is stopped. */
async function stopped(
  name: ComponentName,
  run: ExecInput,
  isNear: () => Promise<boolean> = async () => true,
): Promise<void> {
  const pid = system.pid(name);
  process.kill(pid, "SIGSTOP");
  const keepers = name === "jaild" ? keepersOf(pid) : [];
  send("SIGSTOP", keepers);
  const answer = api.exec(run);
  answer.catch(() => undefined);
  try {
    await until(isNear, SEEN_MS);
    await sleep(slowMs);
  } finally {
    send("SIGCONT", [...keepers, pid]);
  }
  await answer;
}

/** The record of the input is in no cache, and its server is stopped. */
async function authorizeSlowly(): Promise<void> {
  const store = openStore(system);
  try {
    expect(await store.del(objectRecordKey(input.storage_session_id, input.id))).toBe(1);
    await stopped("file-server", reads());
  } finally {
    store.disconnect();
  }
}

async function stopWorker(): Promise<void> {
  const before = await counted("api", "svc_jobs_submitted_total");
  await stopped("worker", reads(), async () => (await counted("api", "svc_jobs_submitted_total")) > before);
}

/** The only slot is taken by a run whose caller leaves. */
async function fillSlots(): Promise<void> {
  const left = new AbortController();
  const first = api.tryExec(bash("sleep 300"), { signal: left.signal }).catch(() => "left");
  await until(inSlot, SEEN_MS);
  const others = Array.from({ length: CONCURRENCY - 1 }, () => api.exec(reads()));
  await until(inWork(CONCURRENCY), SEEN_MS);
  await sleep(slowMs);
  left.abort();
  expect(await first).toBe("left");
  await Promise.all(others);
}

/** As Prometheus would hold them: the usual runs end at minute 6, what was slow ends at minute 66. */
const seriesOf = (before: Told, after: Told) =>
  [...after].map(([series, value]) => {
    const at = (of: Told) => (of.get(series) ?? 0).toFixed(9);
    return { series, values: `${at(began)}+0x5 ${at(usual)}+0x53 ${at(before)}+0x5 ${value.toFixed(9)}+0x1` };
  });

test.each<[string, string, () => Promise<unknown>]>([
  ["api", "authorize", authorizeSlowly],
  ["worker", "queue", stopWorker],
  ["worker", "grant", () => stopped("egress-gateway", reads(), inWork(1))],
  ["runner", "queue", fillSlots],
  ["runner", "setup", () => stopped("jaild", reads(), inSlot)],
  ["runner", "stage_in", () => stopped("file-server", reads(), inSlot)],
  ["runner", "run", () => api.exec(bash(`sleep ${slowMs / 1000}`))],
  ["runner", "store", () => stopped("file-server", writes(), inSlot)],
])("%s: %s", async (component, stage, slow) => {
  const before = await told();
  await slow();
  const input_series = seriesOf(before, await told());
  // Which one it names, not by how much.
  const expr = `0 * (${QUERY})`;
  const exp_samples = [{ labels: `{component="${component}", stage="${stage}"}`, value: 0 }];
  expect(
    await differences({ input_series, promql_expr_test: [{ expr, eval_time: "67m", exp_samples }] }),
  ).toBe("");
});
