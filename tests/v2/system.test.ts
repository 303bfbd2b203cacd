/** The whole system where control groups are of version 2: limits are told from each other, paused programs stand still. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findCgroups } from "@svc/cli/system/cgroups";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../packages/jail-client/test/support/host.ts";
import { slow } from "../../packages/jail-client/test/support/slowness.ts";
import { Api } from "../e2e/support/api.ts";
import { OPEN_LIMITS } from "../e2e/support/open-limits.ts";
import { type System, startSystem } from "../e2e/support/system.ts";

const SMALL = { SANDBOX_MAX_CONCURRENT_JOBS: "2", SANDBOX_MAX_PAUSED: "2", SVC_READY_TIMEOUT: `${slow(60)}` };

let system: System;
let api: Api;
beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, ...SMALL } });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

/** A control file of each slot's group. */
function groupFiles(file: string): string[] {
  return findCgroups(system.instance.cgroup).flatMap((own) =>
    readdirSync(own)
      .filter((name) => name.startsWith("slot-"))
      .map((slot) => readFileSync(join(own, slot, file), "utf8")),
  );
}

test("the groups are of version 2, with memory, processes and processor time", () => {
  expect(readFileSync("/proc/self/cgroup", "utf8")).toMatch(/^0::/);
  for (const controllers of groupFiles("cgroup.controllers"))
    expect(controllers.trim().split(" ")).toEqual(expect.arrayContaining(["cpu", "memory", "pids"]));
  expect(new Set(groupFiles("memory.swap.max").concat(groupFiles("memory.oom.group")))).toEqual(
    new Set(["0\n", "1\n"]),
  );
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
  const answer = await api.exec({ lang: "py", code });
  expect(answer).toMatchObject({ status: "ML", stdout: "" });
  const next = await api.exec({ lang: "bash", code: "echo next" });
  expect(next).toMatchObject({ stdout: "next\n", status: null });
  expect(next.memory).toBeLessThan(20 << 20);
});

test("a fork bomb fails by itself, and nothing of it is left", async () => {
  const answer = await api.exec({ lang: "bash", code: "f(){ f | f & }; f; sleep 1; exit 3" });
  expect(answer.stderr).toMatch(/Resource temporarily unavailable/);
  expect((await api.exec({ lang: "bash", code: "echo next" })).stdout).toBe("next\n");
  await until(() => groupFiles("pids.current").every((count) => Number(count) <= 2), "only waiting jails");
});

test("a paused program is frozen, and goes on with its results", async () => {
  const tools = [{ name: "add", parameters: { type: "object", properties: { a: {}, b: {} } } }];
  const code = "first = await add(a=1, b=2)\nprint(first, await add(a=first, b=4))";
  const post = async (body: object) => (await api.post("/exec/programmatic", body)).ok<Paused>();
  let answer = await post({ code, language: "python", tools });
  for (const expected of [
    { a: 1, b: 2 },
    { a: 3, b: 4 },
  ]) {
    expect(answer).toMatchObject({ status: "tool_call_required", tool_calls: [{ input: expected }] });
    expect(groupFiles("cgroup.events").filter((events) => /^frozen 1$/m.test(events)).length).toBe(1);
    const [call] = answer.tool_calls;
    answer = await post({
      continuation_token: answer.continuation_token,
      tool_results: [{ call_id: call?.id, result: expected.a + expected.b }],
    });
  }
  expect(answer).toMatchObject({ status: "completed", stdout: "3 7\n", stderr: "" });
  expect(groupFiles("cgroup.events").filter((events) => /^frozen 1$/m.test(events))).toEqual([]);
});

interface Paused {
  status: string;
  continuation_token: string;
  tool_calls: { id: string; input: unknown }[];
}
