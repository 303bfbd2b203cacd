/**
 * More paused programs than are kept in memory: they use no processor, plain executions do not notice them, and every one
 * of them completes, from memory or from the top. All on default settings, but for the limits of one caller.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { ProgrammaticResponse, ToolCallRequired } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { cpuMs, median, memoryMiB, nameOf } from "@svc/test-kit/system/consumption";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { treeOf } from "@svc/test-kit/system/holdings";
import { until } from "@svc/test-kit/system/processes";
import {
  declare,
  driveOn,
  resultsOf,
  type Start,
  served,
  startPaused,
  type Tools,
  tryResume,
} from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const PROGRAMS = 100;
const KEPT = 32;
const AT_ONCE = 8;
const SAMPLES = 25;
const WATCHED_MS = 2000;
const HEALED_MS = slow(30_000);
const CROWD = 36;
/** Of memory, for each paused program with its jail. */
const MOST_MIB = 20;
const MOST_SLOWER = 2;
/** What runs in the jail of a paused program. */
const PROGRAM_NAMES: ReadonlySet<string> = new Set(["python3", "bash", "tool-call"]);

const ADD = { add: ({ a, b }) => a + b } satisfies Tools;
const LANGUAGES = ["python", "bash"] as const;
const ONE_CALL = {
  python: `print("begin", sys.argv[1])
open("before.txt", "w").write("x")
r = await add(a=int(sys.argv[1]), b=1)
print(r, open("before.txt").read())`,
  bash: `echo begin "$1"
echo -n x > before.txt
r=$(add "{\\"a\\":$1,\\"b\\":1}")
echo "$r $(cat before.txt)"`,
};

const THREE_CALLS = {
  python: `x = int(sys.argv[1])
for i in range(3):
    print(x)
    x = add(a=x, b=i + 1)
print(x)`,
  bash: `x=$1
for i in 1 2 3; do
  echo "$x"
  x=$(add "{\\"a\\":$x,\\"b\\":$i}")
done
echo "$x"`,
};

/** Every other one in Bash; its number is its argument. */
function startOf(sources: Record<(typeof LANGUAGES)[number], string>, index: number): Start {
  const lang = LANGUAGES[index % 2 === 0 ? 0 : 1];
  return { lang, code: sources[lang], args: [String(index)], tools: declare(Object.keys(ADD)) };
}

let system: System;
let api: Api;
beforeAll(async () => {
  // Jails that wait warm would be counted as programs.
  const env = {
    MAX_REQUESTS: "100000",
    PTC_RESUME_MAX_REQUESTS: "100000",
    SANDBOX_MAX_PAUSED_PER_PRINCIPAL: String(KEPT),
    SANDBOX_WARM_START: "off",
  };
  system = await startSystem({ env });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

/** The value of a metric of a component; labels in the order in which it names them. */
async function metric(component: "runner" | "api", name: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${system.instance.ports[component]}/metrics`);
  const line = (await response.text()).split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(" ").at(-1) ?? 0);
}
const paused = () => metric("runner", 'svc_sandbox_active_executions{state="paused"}');
const evictedFor = (cause: string) => metric("runner", `svc_ptc_live_evictions_total{cause="${cause}"}`);
/** A microVM counts with all of its memory: there may be too much before there are too many. */
const evicted = async () => (await evictedFor("max_paused")) + (await evictedFor("memory"));
const completed = (mode: "live" | "replay") =>
  metric("api", `svc_ptc_replay_continuations_total{mode="${mode}",outcome="completed"}`);

/** Does something for each number below the count, a few at once. */
async function forEach<T>(count: number, act: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < count; index = next++) results[index] = await act(index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return results;
}

/** Median time of a plain execution, in ms. */
async function plainMs(): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const began = performance.now();
    expect((await api.exec({ lang: "py", code: "print(1)" })).stdout).toBe("1\n");
    times.push(performance.now() - began);
  }
  return median(times);
}

// Jails in microVMs cannot be seen from outside.
test.skipIf(IN_GUESTS)(
  "100 paused programs use no processor, and every one of them completes",
  async () => {
    await plainMs();
    const before = await plainMs();
    const jaild = system.pid("jaild");
    const idle = new Set(treeOf(jaild));
    const jails = () => treeOf(jaild).filter((pid) => !idle.has(pid));
    const programs = () => jails().filter((pid) => PROGRAM_NAMES.has(nameOf(pid)));
    expect(programs()).toEqual([]);

    const starts = await forEach(PROGRAMS, (index) => startPaused(api, startOf(ONE_CALL, index)));
    await until(async () => (await paused()) === KEPT, HEALED_MS);
    expect(await evicted()).toBe(PROGRAMS - KEPT);

    const during = await plainMs();
    const watched = programs();
    expect(watched.length).toBeGreaterThanOrEqual(KEPT);
    const usedBefore = cpuMs(watched);
    await sleep(WATCHED_MS);
    expect(cpuMs(watched)).toBe(usedBefore);
    const mib = memoryMiB(jails());
    expect(mib).toBeLessThan(KEPT * MOST_MIB);

    await forEach(PROGRAMS, async (index) => {
      const { answer } = await driveOn(api, starts[index] as ToolCallRequired, ADD);
      expect(answer).toMatchObject({ status: "completed", stderr: "", tool_calls_made: 1 });
      expect(answer.stdout).toBe(`begin ${index}\n${index + 1} x\n`);
      expect(answer.files.map(({ name }) => name)).toEqual(["before.txt"]);
    });
    expect(await completed("live")).toBe(KEPT);
    expect(await completed("replay")).toBe(PROGRAMS - KEPT);
    expect(await paused()).toBe(0);
    await until(() => programs().length === 0, HEALED_MS, programs);

    const after = await plainMs();
    const ms = (value: number) => `${value.toFixed(1)} ms`;
    console.log(
      `plain executions: ${ms(before)} before, ${ms(during)} beside paused programs, ${ms(after)} after`,
    );
    console.log(`${KEPT} paused programs: ${mib.toFixed(0)} MiB, no processor time in ${WATCHED_MS} ms`);
    expect(during).toBeLessThan(MOST_SLOWER * Math.max(before, after));
  },
  slow(240_000),
);

test(
  "programs of several rounds, more than are kept, all complete while they push each other out",
  async () => {
    const evictedBefore = await evicted();
    const answers: ProgrammaticResponse[] = await forEach(CROWD, (index) =>
      startPaused(api, startOf(THREE_CALLS, index)),
    );
    for (let round = 1; round <= 3; round++) {
      await forEach(CROWD, async (index) => {
        const { continuation_token, tool_calls } = answers[index] as ToolCallRequired;
        const results = resultsOf(tool_calls, ADD);
        answers[index] = await served(() => tryResume(api, continuation_token, results));
      });
    }
    expect(answers.map((answer) => answer.status === "completed" && [answer.stdout, answer.stderr])).toEqual(
      answers.map((_, index) => [`${index}\n${index + 1}\n${index + 3}\n${index + 6}\n`, ""]),
    );
    expect(await evicted()).toBeGreaterThan(evictedBefore);
    expect(await paused()).toBe(0);
  },
  slow(240_000),
);
