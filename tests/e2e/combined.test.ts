/** One process for five components (SVC_TOPOLOGY=combined): what stays apart, how it ends, and what outlives its death. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identify, signalProcess } from "@svc/cli/system/process";
import { COMBINED } from "@svc/cli/topology";
import type { ExecResponse } from "@svc/contracts";
import { Api, output } from "@svc/test-kit/system/api";
import { SANDBOX } from "@svc/test-kit/system/guests";
import { until } from "@svc/test-kit/system/processes";
import { declare, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { privateFolder, svc } from "./support/svc.ts";

const HEALED_MS = 30_000;
/** Metrics, with the components that have them. */
const OWNERS: Record<string, readonly string[]> = {
  svc_jobs_submitted_total: ["api"],
  svc_http_requests_total: ["api", "file-server"],
  svc_worker_running: ["worker"],
  svc_tool_calls_total: ["tool-call-server"],
};

let system: System;
let api: Api;
beforeAll(async () => {
  system = await startSystem({ env: { SVC_TOPOLOGY: "combined" } });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const linesOf = (name: string) =>
  readFileSync(join(system.instance.logsDir, `${name}.log`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { name: string; msg: string });

/** Sends the signal to the process and waits for the next one. */
async function untilStartedAgain(signal: NodeJS.Signals): Promise<void> {
  const before = identify(system.pid("combined"));
  if (before === undefined) throw new Error("the process does not run");
  signalProcess(before, signal);
  const current = () => system.state().components.find(({ name }) => name === "combined")?.process?.pid;
  await until(() => ![undefined, before.pid].includes(current()), HEALED_MS);
  const isServing = async () => (await fetch(`${system.url}/ready`).catch(() => undefined))?.ok === true;
  await until(isServing, HEALED_MS);
}

test("its components share one process, and each has its own port", async () => {
  expect(new Set(COMBINED.map((name) => system.pid(name)))).toEqual(new Set([system.pid("combined")]));
  const apart = [...SANDBOX, "combined"] as const;
  expect(new Set(apart.map((name) => system.pid(name))).size).toBe(apart.length);
  expect(new Set(COMBINED.map((name) => system.instance.ports[name])).size).toBe(COMBINED.length);
});

test.each(COMBINED)("the %s keeps its name and its log", (name) => {
  const lines = linesOf(name);
  expect(new Set(lines.map((line) => line.name))).toEqual(new Set([name]));
  expect(lines.map(({ msg }) => msg)).toEqual(expect.arrayContaining(["starting", "running"]));
});

test.each(COMBINED)("the %s keeps its metrics, with the process's", async (name) => {
  const response = await fetch(`http://127.0.0.1:${system.instance.ports[name]}/metrics`);
  const names = new Set(
    [...(await response.text()).matchAll(/^# TYPE (svc_\w+|process_\w+)/gm)].map(
      ([, metric]) => metric ?? "",
    ),
  );
  expect(names).toContain("process_cpu_seconds_total");
  for (const [metric, owners] of Object.entries(OWNERS)) {
    expect(names.has(metric), metric).toBe(owners.includes(name));
  }
});

describe("the end of the process", () => {
  test("in order: a run that goes on ends, and its caller has the answer", async () => {
    const code = "import time\ntime.sleep(2)\nopen('made.txt', 'w').write('kept')\nprint('whole')";
    const running = api.exec({ lang: "py", code });
    running.catch(() => undefined);
    await until(async () => (await activeExecutions(system, "running")) > 0, HEALED_MS);
    await untilStartedAgain("SIGTERM");
    const answer = await running;
    expect(answer).toMatchObject({ stdout: "whole\n", code: 0 } satisfies Partial<ExecResponse>);
    expect((await api.bytes(output(answer, "made.txt"))).toString()).toBe("kept");
    // Canaries run from then on.
    expect(linesOf("worker").findLast(({ msg }) => msg !== "run")?.msg).toBe("running");
  });

  test("by kill -9: a paused program goes on, and files are there", async () => {
    const stored = await api.stage("input.txt", "the input");
    const code = "print(1)\nprint(await add(a=1, b=2))\n";
    const paused = await startPaused(api, { code, language: "python", tools: declare(["add"]) });
    await untilStartedAgain("SIGKILL");
    const { answer } = await driveOn(api, paused, { add: ({ a, b }: { a: number; b: number }) => a + b });
    expect(answer).toMatchObject({ status: "completed", stdout: "1\n3\n" });
    expect((await api.bytes(stored)).toString()).toBe("the input");
  });
});

test("a topology that does not exist is refused by its name", async () => {
  const { environment, remove } = await privateFolder();
  try {
    const up = await svc(["up", "-d", "--no-example"], { ...environment, SVC_TOPOLOGY: "both" });
    expect(up.code).toBe(1);
    expect(up.stderr).toContain('SVC_TOPOLOGY must be one of combined, separate, not "both"');
  } finally {
    remove();
  }
});
