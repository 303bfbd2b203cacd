/**
 * Hostile programs and what must hold around each of them: it is answered in time and within its size, a bystander of
 * another tenant does not notice it, and afterwards the system holds what it held when it was idle.
 */
import type { ExecResponse } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { PROBE } from "@svc/test-kit/programs/probe";
import type { ExecInput } from "@svc/test-kit/system/api";
import { observe } from "@svc/test-kit/system/bystander";
import { median, memoryMiB } from "@svc/test-kit/system/consumption";
import { collectGarbage } from "@svc/test-kit/system/garbage";
import { untilHeldAsBefore, type WaitTimes } from "@svc/test-kit/system/holdings";
import { until } from "@svc/test-kit/system/processes";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { expect } from "vitest";
import { componentPids } from "./component-pids.ts";
import { attacker, bystander, running, system } from "./running.ts";

const RUN_TIMEOUT_MS = slow(20_000);
/** Everything of an answer but the run itself, on a machine that does other work. */
const BESIDE_MS = slow(20_000);
/** Both streams at their caps with every byte escaped, and the longest lists of files. */
const ANSWER_BYTES = 1 << 20;
/** Bystanders: the median within three times the usual or this, each one within the other. */
const FLOOR_MS = slow(2000);
const WORST_MS = slow(15_000);
const SETTLE_MS = slow(15_000);
/** Connections that stay open for a next request: as many as were in use at once. A leak of every run passes it soon. */
export const POOLED = 96;
/** A JavaScript heap that is not yet collected. */
const HEAPS_MIB = 400;

/** Runs an action that does something hostile, and checks what must hold during and after it. */
export async function besiege<T>(action: () => Promise<T>): Promise<T> {
  const { result, observed } = await observe(bystander, action());
  expect(observed.failures, "what a bystander met").toEqual([]);
  expect(median(observed.latenciesMs), "what a bystander waited").toBeLessThan(
    Math.max(3 * running.idle.usualMs, FLOOR_MS),
  );
  expect(observed.worstMs).toBeLessThan(WORST_MS);
  await untilIdle();
  return result;
}

export interface Idle extends WaitTimes {
  /** Infinity: connections are counted later. */
  pooled?: number;
}

/** Waits until all slots are free and the system holds what it held when it was idle, but for so many pooled connections. */
export async function untilIdle({
  withinMs = SETTLE_MS,
  pooled = POOLED,
  ...waitTimes
}: Idle = {}): Promise<void> {
  await until(
    async () =>
      (await activeExecutions(system, "running")) === 0 && (await activeExecutions(system, "paused")) === 0,
    withinMs,
    () => "slots are taken",
  );
  await untilHeldAsBefore(system, running.idle.holdings, pooled, { withinMs, ...waitTimes });
  const pids = componentPids(system, running.tokenApiPid);
  const more = () => memoryMiB(pids) - running.idle.memoryMiB;
  if (more() >= HEAPS_MIB) await collectGarbage(pids);
  expect(more(), "MiB that our processes need more").toBeLessThan(HEAPS_MIB);
}

/** Runs one hostile program of the attacker's. */
export function hostile(program: ExecInput): Promise<ExecResponse> {
  return besiege(() => answered(program));
}

/** Runs hostile programs at the same time. */
export function hostiles(programs: readonly ExecInput[]): Promise<ExecResponse[]> {
  return besiege(() => Promise.all(programs.map(answered)));
}

async function answered(program: ExecInput): Promise<ExecResponse> {
  const limit = Number(program.run_timeout ?? RUN_TIMEOUT_MS);
  const began = performance.now();
  const answer = await attacker.tryExec({ run_timeout: limit, ...program });
  expect(performance.now() - began, "time of the answer").toBeLessThan(limit + BESIDE_MS);
  expect(answer.bytes.length, "size of the answer").toBeLessThan(ANSWER_BYTES);
  return answer.ok<ExecResponse>();
}

/**
 * Runs a hostile Python program that has `call` and `attempt` (see probe.ts) and shows its evidence with `show`. Throws
 * when the program itself fails: an attempt that was not made proves nothing.
 */
export async function evidence<T>(code: string, more: ExecInput = {}): Promise<T> {
  return evidenceOf<T>(await hostile({ lang: "py", code: PYTHON + code, ...more }));
}

/** What a program has shown. */
export function evidenceOf<T>({ code, stdout, stderr }: ExecResponse): T {
  if (code !== 0) throw new Error(`the program failed (${code}): ${stderr || stdout}`);
  return JSON.parse(stdout) as T;
}

/** Goes before hostile Python programs. */
export const PYTHON = `${PROBE}
def show(value):
    print(json.dumps(value))
`;
