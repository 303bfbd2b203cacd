/** Two machines with a worker and a runner each: what the second one adds, and what callers see when it is cut off and comes back. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ToolCallRequired } from "@svc/contracts";
import { Api } from "@svc/test-kit/system/api";
import { until } from "@svc/test-kit/system/processes";
import { declare, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { afterAll, beforeAll, expect, test } from "vitest";
import { redisHolds } from "../chaos/run.ts";
import type { Fault } from "../chaos/schedule.ts";
import { LONGEST_MS } from "../chaos/system.ts";
import { isIdle, type Runner } from "./support/by-hand.ts";
import { FleetLoad, LOAD_ENV } from "./support/fleet-load.ts";
import { SLOTS, TwoMachines } from "./support/two-machines.ts";

/** `./svc test --all` cuts for longer. */
const CUT_MS = Number(process.env.FLEET_CUT_SECONDS ?? 12) * 1000;
/** Without luck, however busy this machine is. */
const SOON_MS = 90_000;
const PROGRAM_MS = 1500;

let fleet: TwoMachines;
let api: Api;
beforeAll(async () => {
  fleet = await TwoMachines.start({ ...LOAD_ENV, TOOL_CALL_REQUEST_TIMEOUT: "240000" });
  api = new Api(fleet.url);
  await fleet.startSite(0);
});
afterAll(async () => {
  expect(await fleet?.stop()).toEqual([]);
});

/** Programs that wait more than they compute, as many at once as both machines have slots. */
async function measured(count: number) {
  const [began, cpuBefore] = [performance.now(), fleet.cpuMs];
  let left = count;
  const client = async () => {
    while (left-- > 0) {
      const { stdout } = await api.exec({
        lang: "bash",
        code: `sleep ${PROGRAM_MS / 1000}; echo $((6 * 7))`,
      });
      expect(stdout).toBe("42\n");
    }
  };
  await Promise.all(Array.from({ length: 2 * SLOTS }, client));
  const seconds = (performance.now() - began) / 1000;
  return { perSecond: count / seconds, cpuMs: (fleet.cpuMs - cpuBefore) / count };
}

test("two machines do 1.8 times the work of one, or as much with each millisecond of processor time", async () => {
  await measured(2);
  const one = await measured(8);
  await fleet.startSite(1);
  await runsOn(1);
  const two = await measured(16);
  const times = two.perSecond / one.perSecond;
  const told = [one, two].map(
    ({ perSecond, cpuMs }) => `${perSecond.toFixed(2)}/s at ${cpuMs.toFixed(0)} ms`,
  );
  console.log(`one machine ${told[0]} of processor time each, two ${told[1]}: ${times.toFixed(2)} times`);
  // Where both machines wait for the same processors, the second one can add no more than they have left.
  if (times < 1.8) expect(two.cpuMs).toBeLessThan(1.5 * one.cpuMs);
});

const countOf = (text: string, name: string) =>
  [...text.matchAll(new RegExp(`^${name}(?:{.*})? (\\d+)$`, "gm"))].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
const metric = async ({ component }: Runner, name: string) =>
  countOf(await (await fetch(`${component.url}/metrics`)).text(), name);
const executionsOf = (runner: Runner) => metric(runner, "svc_sandbox_executions_total");
const pausedOf = (runner: Runner) => metric(runner, 'svc_sandbox_active_executions{state="paused"}');
const runnerAt = (at: number) => fleet.sites[at]?.runner as Runner;

/** Programs are sent until this machine has ended one. */
async function runsOn(at: number): Promise<void> {
  const before = await executionsOf(runnerAt(at));
  const isUsed = async () => {
    const run = () => api.tryExec({ lang: "bash", code: "sleep 0.3" });
    await Promise.all(Array.from({ length: 2 * SLOTS }, run));
    return (await executionsOf(runnerAt(at))) > before;
  };
  await until(isUsed, SOON_MS);
}

const TOOLS = { add: ({ a, b }: { a: number; b: number }) => a + b };
const CODE = "print(1)\nprint(await add(a=1, b=2))\nprint(await add(a=3, b=4))\n";

/** Programs that are paused, some of them on this machine. */
async function pausedOn(at: number, wanted: number): Promise<ToolCallRequired[]> {
  const paused: ToolCallRequired[] = [];
  const isEnough = async () => {
    paused.push(await startPaused(api, { code: CODE, language: "python", tools: declare(["add"]) }));
    return (await pausedOf(runnerAt(at))) >= wanted;
  };
  await until(isEnough, SOON_MS);
  return paused;
}

test(
  `a machine that is cut off for ${CUT_MS / 1000} s takes no answer with it`,
  async () => {
    const paused = await pausedOn(1, 2);
    const load = new FleetLoad(api, `cut${randomUUID().slice(0, 8)}`, 1);
    await until(() => Object.keys(load.counts).length >= 10, SOON_MS);
    const [, site] = fleet.sites;
    const atMs = load.seen.now();
    site?.machine.unplug();
    const back = sleep(CUT_MS).then(() => site?.machine.plug());
    // One half of them while nothing knows that machine, the other half when it is back.
    const half = paused.splice(0, Math.ceil(paused.length / 2));
    const driven = await Promise.all(half.map((one) => driveOn(api, one, TOOLS)));
    await back;
    const cut: Fault = { atMs, forMs: load.seen.now() - atMs, what: "cut", where: "worker>runner" };
    driven.push(...(await Promise.all(paused.map((one) => driveOn(api, one, TOOLS)))));
    for (const { answer } of driven)
      expect(answer).toMatchObject({ status: "completed", stdout: "1\n3\n7\n" });
    await runsOn(1);
    const found = await load.end([cut], { longestMs: LONGEST_MS, healingMs: 20_000, slots: 2 * SLOTS });
    console.log(JSON.stringify(load.counts));
    expect(found).toEqual([]);
    await until(async () => (await isIdle(runnerAt(0))) && isIdle(runnerAt(1)), SOON_MS);
    await redisHolds(fleet.hand.redis.socket);
  },
  CUT_MS + 240_000,
);
