/** The whole system where control groups are of version 2: limits are told from each other, paused programs stand still. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findCgroups } from "@svc/cli/system/cgroups";
import { until } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { drive } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const SMALL = {
  SANDBOX_MAX_CONCURRENT_JOBS: "2",
  SANDBOX_MAX_PAUSED: "2",
  // Two programs at once must fit into the memory of the machine.
  SANDBOX_WORKSPACE_MAX_BYTES: String(128 << 20),
  SVC_READY_TIMEOUT: `${slow(60)}`,
  PTC_SETTLE_MAX_MS: `${slow(20_000)}`,
};

let system: System;
let api: Api;
beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_PROGRAM_LIMITS, ...SMALL } });
  api = new Api(system.url);
}, slow(90_000));
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

/** A control file of each slot's group. */
function groupFiles(file: string): string[] {
  return findCgroups(system.instance.cgroup)
    .map((own) => join(own, "jails"))
    .flatMap((jails) =>
      readdirSync(jails)
        .filter((name) => name.startsWith("slot-"))
        .map((slot) => readFileSync(join(jails, slot, file), "utf8")),
    );
}

/** How many processes the fullest slot holds. */
function mostInOneSlot(): number {
  return Math.max(...groupFiles("cgroup.procs").map((text) => text.split("\n").filter(Boolean).length));
}

/** Its first process, and an interpreter that was started before its program is known. */
const WAITING_JAIL = 2;

const frozenGroups = () => groupFiles("cgroup.events").filter((events) => /^frozen 1$/m.test(events)).length;

test("the groups of the slots are of version 2, with memory, processes and processor time", () => {
  const given = groupFiles("cgroup.controllers");
  expect(given.length).toBeGreaterThanOrEqual(4);
  for (const controllers of given)
    expect(controllers.trim().split(" ")).toEqual(expect.arrayContaining(["cpu", "memory", "pids"]));
});

test("a program runs, and its memory and processor time are told", async () => {
  const answer = await api.exec({ lang: "py", code: "x = b'1' * (50 << 20); print(6 * 7)" });
  expect(answer).toMatchObject({ stdout: "42\n", stderr: "", code: 0, status: null });
  expect(answer.memory).toBeGreaterThan(50 << 20);
  expect(answer.memory).toBeLessThan(200 << 20);
  expect(answer.cpu_time).toBeGreaterThan(0);
});

test("a program that takes too much memory ends with ML, the next one is not charged for it", async () => {
  const code = "l = []\nwhile True: l.append(bytearray(1 << 20))";
  expect(await api.exec({ lang: "py", code })).toMatchObject({ status: "ML", stdout: "" });
  const next = await api.exec({ lang: "bash", code: "echo next" });
  expect(next).toMatchObject({ stdout: "next\n", status: null });
  expect(next.memory).toBeLessThan(20 << 20);
});

test("a fork bomb fails by itself, and nothing of it is left", async () => {
  const bomb = `f() { f | f & }; f; sleep ${slow(1)}; exit 3`;
  const run = api.exec({ lang: "bash", code: bomb, run_timeout: slow(4000) });
  await until(() => mostInOneSlot() > WAITING_JAIL + 5, "the bomb runs");
  const answer = await run;
  expect(answer.stderr).toMatch(/Resource temporarily unavailable/);
  expect((await api.exec({ lang: "bash", code: "echo next" })).stdout).toBe("next\n");
  await until(() => mostInOneSlot() <= WAITING_JAIL, "only waiting jails");
});

test("a program with tools is frozen while it is paused, and goes on with its results", async () => {
  const frozen: number[] = [];
  const { answer, batches } = await drive(
    api,
    { code: "first = await add(a=1, b=2)\nprint(first, await add(a=first, b=4))" },
    { add: ({ a, b }) => a + b },
    { between: () => frozen.push(frozenGroups()) },
  );
  expect(answer).toMatchObject({ status: "completed", stdout: "3 7\n", stderr: "" });
  expect(batches).toEqual([["add"], ["add"]]);
  expect(frozen).toEqual([1, 1]);
  expect(frozenGroups()).toBe(0);
});
