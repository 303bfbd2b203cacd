/**
 * A system under load as its operator sees it: counters are exact, gauges tell the truth after kills, and Debian's Prometheus takes the
 * files of deploy/monitoring and answers every expression in them.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, SERVICES } from "@svc/cli/instance";
import { mustRun } from "@svc/cli/system/run";
import type { FileRef } from "@svc/contracts";
import { killProcess } from "@svc/test-kit/jail/host";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { NO_CANARY, OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { drive, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { scrapeOf, sumOf } from "@svc/test-kit/system/scrape";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expressionsOfAlerts, expressionsOfDashboard, NO_DATA } from "./support/monitoring.ts";
import { MONITORING, type Prometheus, promtool, startPrometheus } from "./support/prometheus.ts";

const CONCURRENCY = 2;
const SEEN_MS = 60_000;
const RUN_MS = 60_000;
const TOOLS = { add: ({ a, b }: { a: number; b: number }) => a + b };
const CALLS = { lang: "py", code: "print(await add(a=1, b=2))" };

let system: System;
let api: Api;
let input: FileRef;
let prometheus: Prometheus;

beforeAll(async () => {
  system = await startSystem({
    env: {
      ...OPEN_PROGRAM_LIMITS,
      ...ONE_BY_ONE,
      ...NO_CANARY,
      PYTHON_CONCURRENCY: String(CONCURRENCY),
      SANDBOX_MAX_CONCURRENT_JOBS: "4",
    },
  });
  api = new Api(system.url);
  input = await api.stage("input.txt", "the input");
  prometheus = await startPrometheus(system.instance);
});

afterAll(async () => {
  await prometheus?.stop();
  expect(await system.stop()).toEqual([]);
});

const python = (code: string, more: ExecInput = {}): ExecInput => ({ lang: "py", code, ...more });
const usual = () => python('open("made.txt", "w").write(open("input.txt").read())', { files: [input] });
const scrape = (
  component: "api" | "worker" | "runner" | "egress-gateway" | "tool-call-server" | "file-server",
) => scrapeOf(system.instance, component);

test("promtool accepts the configuration and its rules", async () => {
  const tool = await promtool();
  await mustRun([tool, "check", "config", join(MONITORING, "prometheus.yml")], "promtool check config");
  await mustRun([tool, "check", "rules", join(MONITORING, "alerts.yml")], "promtool check rules");
});

/** Totals that an operator would add up. */
async function totals() {
  const [ofApi, worker, runner] = await Promise.all([scrape("api"), scrape("worker"), scrape("runner")]);
  const stage = (of: typeof ofApi, name: string) => sumOf(of, "svc_stage_seconds_count", { stage: name });
  return {
    submitted: sumOf(ofApi, "svc_jobs_submitted_total"),
    completed: sumOf(worker, "svc_jobs_completed_total"),
    failed: sumOf(worker, "svc_jobs_failed_total"),
    cancelled: sumOf(worker, "svc_jobs_cancelled_total"),
    waited: sumOf(worker, "svc_queue_wait_seconds_count"),
    success: sumOf(runner, "svc_sandbox_executions_total", { outcome: "success" }),
    programErrors: sumOf(runner, "svc_sandbox_executions_total", { outcome: "program_error" }),
    timeouts: sumOf(runner, "svc_sandbox_executions_total", { outcome: "timeout" }),
    cancelledRuns: sumOf(runner, "svc_sandbox_executions_total", { outcome: "cancelled" }),
    authorize: stage(ofApi, "authorize"),
    queue: stage(worker, "queue"),
    grant: stage(worker, "grant"),
    setup: stage(runner, "setup"),
    stageIn: stage(runner, "stage_in"),
    run: stage(runner, "run"),
    collect: stage(runner, "collect"),
    store: stage(runner, "store"),
  };
}

async function loadOnce(): Promise<void> {
  const left = new AbortController();
  const cancelled = api
    .tryExec(python("import time; time.sleep(30)"), { signal: left.signal })
    .catch(() => "left");
  await until(
    async () => sumOf(await scrape("runner"), "svc_sandbox_slots", { state: "busy" }) === 1,
    RUN_MS,
  );
  left.abort();
  await cancelled;
  const runs = [
    ...Array.from({ length: 6 }, usual),
    ...Array.from({ length: 3 }, () => python("raise SystemExit(3)")),
    python("while True: pass", { run_timeout: 500 }),
  ];
  await Promise.all([...runs.map((run) => api.exec(run)), drive(api, CALLS, TOOLS)]);
}

test("counters of a loaded system are exact: each run is counted once, in each stage that it had", async () => {
  const before = await totals();
  await loadOnce();
  const counted = async () => {
    const after = await totals();
    return Object.fromEntries(
      Object.entries(after).map(([name, value]) => [name, value - before[name as keyof typeof before]]),
    );
  };
  // 10 runs, one whose client left, a start and a resume.
  await expect.poll(counted, { timeout: SEEN_MS }).toEqual({
    submitted: 13,
    completed: 12,
    failed: 0,
    cancelled: 1,
    waited: 13,
    success: 7,
    programErrors: 3,
    timeouts: 1,
    cancelledRuns: 1,
    authorize: 12,
    queue: 13,
    grant: 13,
    setup: 12,
    stageIn: 12,
    run: 12,
    collect: 11,
    store: 11,
  });
});

/** Waits until every component was scraped well after this moment: a busy machine may be late for a scrape. */
async function scrapedAfter(seconds: number): Promise<void> {
  const scraped = async () =>
    (await prometheus.query(`count(timestamp(up{job="svc"} == 1) > ${seconds})`))[0]?.value;
  await until(async () => (await scraped()) === SERVICES.length, SEEN_MS);
}

const nowSeconds = () => Date.now() / 1000;

describe("Prometheus", () => {
  beforeAll(async () => {
    // A rate needs what was there before: each series is scraped once before the load that is shown.
    await loadOnce();
    await scrapedAfter(nowSeconds());
    await loadOnce();
    await api.bytes((await api.exec(usual())).files.find(({ name }) => name === "made.txt") ?? input);
    await scrapedAfter(nowSeconds());
  });

  test.each(expressionsOfAlerts())("alert $name has data to judge by", async ({ name, expression }) => {
    if (NO_DATA[name] !== undefined) expect(await prometheus.query(expression)).toEqual([]);
    else await expect.poll(() => prometheus.query(expression), { timeout: SEEN_MS }).not.toEqual([]);
  });

  test.each(expressionsOfDashboard())("panel $name shows $expression", async ({ expression }) => {
    const numbers = async () =>
      (await prometheus.query(expression)).filter(({ value }) => Number.isFinite(value)).length;
    await expect.poll(numbers, { timeout: SEEN_MS }).toBeGreaterThan(0);
  });

  test("names one stage where docs/operate.md asks which one is slow", async () => {
    const page = readFileSync(join(ROOT, "docs/operate.md"), "utf8");
    const [, query = ""] = /```promql\n([\s\S]*?)```/.exec(page) ?? [];
    expect(query).toContain("offset 1h");
    const stages = async () =>
      (await prometheus.query(query.replaceAll("offset 1h", "offset 1s"))).map(({ metric }) => metric);
    const named = [{ component: expect.any(String), stage: expect.any(String) }];
    await expect.poll(stages, { timeout: SEEN_MS }).toEqual(named);
  });

  test("evaluates all rules, and scrapes all components", async () => {
    const rules = async () => {
      const { groups } = await prometheus.get<{ groups: { rules: { name: string; health: string }[] }[] }>(
        "/api/v1/rules",
      );
      return groups.flatMap((group) => group.rules.map(({ health }) => health));
    };
    await expect.poll(rules, { timeout: SEEN_MS }).toEqual(expressionsOfAlerts().map(() => "ok"));
    expect(await prometheus.query('sum(up{job="svc"})')).toMatchObject([{ value: 6 }]);
  });
});

/** What the gauges say of work that is in hand. */
async function inHand() {
  const [worker, runner, tools] = await Promise.all([
    scrape("worker"),
    scrape("runner"),
    scrape("tool-call-server"),
  ]);
  return {
    jobs: sumOf(worker, "svc_active_jobs"),
    waiting: sumOf(worker, "svc_queue_jobs", { state: "waiting" }),
    active: sumOf(worker, "svc_queue_jobs", { state: "active" }),
    running: sumOf(runner, "svc_sandbox_active_executions", { state: "running" }),
    paused: sumOf(runner, "svc_sandbox_active_executions", { state: "paused" }),
    busy: sumOf(runner, "svc_sandbox_slots", { state: "busy" }),
    free: sumOf(runner, "svc_sandbox_slots", { state: "free" }),
    exchanges: sumOf(tools, "svc_tool_call_active_sessions"),
  };
}

const NOTHING = { jobs: 0, waiting: 0, active: 0, running: 0, paused: 0, busy: 0, free: 4, exchanges: 0 };

test.each(["worker", "runner"] as const)("gauges tell the truth after kill -9 of the %s", async (name) => {
  await expect.poll(inHand, { timeout: SEEN_MS }).toEqual(NOTHING);
  const paused = await startPaused(api, { ...CALLS, tools: [{ name: "add" }] });
  const runs = Array.from({ length: 5 }, () => api.tryExec(python("import time; time.sleep(5)")));
  const full = { jobs: CONCURRENCY, active: CONCURRENCY, waiting: 3, running: CONCURRENCY, paused: 1 };
  await expect.poll(inHand, { timeout: SEEN_MS }).toMatchObject({ ...full, busy: 2, free: 2, exchanges: 1 });
  const before = system.pid(name);
  killProcess(before);
  const isBack = () => {
    try {
      return system.pid(name) !== before;
    } catch {
      return false;
    }
  };
  await until(isBack, SEEN_MS);
  for (const run of runs) expect((await run).status).toBe(200);
  const still = { ...NOTHING, exchanges: 1, paused: name === "runner" ? 0 : 1 };
  await expect
    .poll(() => inHand().catch((error: Error) => error.message), { timeout: SEEN_MS })
    .toEqual(still);
  expect((await driveOn(api, paused, TOOLS)).answer).toMatchObject({ status: "completed", stdout: "3\n" });
  await expect.poll(inHand, { timeout: SEEN_MS }).toEqual(NOTHING);
});
