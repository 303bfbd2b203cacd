/**
 * Overload: one principal offers ten times what the copy can do, and another one sends one run after the other. Measures
 * what is refused, how soon and with which code; the admitted runs and the runs of the other principal; and whether
 * everything is as before afterwards.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Note } from "@svc/cli/terminal";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { type PrivateCopy, startPrivateCopy } from "@svc/test-kit/system/private-copy";
import { pssByComponent } from "../accounting.ts";
import { startBareServer } from "../bare-process.ts";
import { type Origin, VERSIONS } from "../result.ts";
import { begin } from "../run.ts";
import { settingsOf } from "../settings.ts";
import { round, type Summary, sum, summarize } from "../statistics.ts";
import { Caller, type Seen } from "./caller.ts";

const BARE = new URL("./bare-refusals.ts", import.meta.url);
/** The generator measures time, so it must not wait for a processor. */
const GENERATOR_PRIORITY = -10;
const AUTOGROUP = "/proc/self/autogroup";
/**
 * The settings of an operator who changes nothing, except for rate limit windows that are never full: SEATS runs of a
 * caller at once, and the default number of slots.
 */
const { SANDBOX_MAX_CONCURRENT_JOBS: _, ...OPEN } = settingsOf("warm");
const SEATS = "20";
const TIMES_CAPACITY = 10;
/** Requests that may be open at once; further requests are not sent. */
const MOST_OPEN = 200;
const TICK_MS = 5;
const WARM_UP_MS = 10_000;

export interface Offered {
  seconds: number;
  sent: number;
  admitted: number;
  admittedPerSecond: number;
  refused: number;
  /** By status and error code. */
  refusals: Record<string, number>;
  /** Milliseconds. */
  refusalMs: Summary;
  admittedMs: Summary;
  withoutRetryAfter: number;
}

export interface OverloadResult extends Origin {
  version: typeof VERSIONS.overload;
  kind: "overload";
  settings: Record<string, string>;
  /** Runs per second with as many requests in flight as there are slots, and nothing else. */
  bestPerSecond: number;
  /** Runs per second while the flood goes to a bare server that refuses every request, so that the generator has the same work. */
  besideBarePerSecond: number;
  /** Milliseconds of the other principal by itself, beside the flood, and afterwards. */
  quiet: Summary;
  beside: Summary;
  after: Summary;
  flood: Offered;
  /** MiB of all components in turn: after the warm-up, at the begin and at the end of the flood. */
  mib: { before: number; first: number; last: number };
  /** Milliseconds of the first run after the flood. */
  firstAfterMs: number;
}

export async function overload(seconds: number): Promise<OverloadResult> {
  const { progress, end } = await begin(2);
  const signer = newSigner();
  const settings = {
    ...OPEN,
    SVC_MAX_CONCURRENT_EXECUTIONS: SEATS,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  };
  const bare = await startBareServer(BARE);
  const copy = await progress.step("Starting a private copy", () => startPrivateCopy({ env: settings }));
  const flooding = new Caller(copy.url, signer, "flooding");
  const other = new Caller(copy.url, signer, "other");
  const floodingBare = new Caller(bare.url, signer, "flooding");
  // Only now, so that the processes that were started before do not inherit the priority.
  goFirst();
  try {
    const measured = await progress.step(`A flood of ${seconds} s`, (note) =>
      measure({ copy, flooding, floodingBare, other }, seconds, note),
    );
    const { SVC_JWT_PUBLIC_KEY: _, ...told } = settings;
    return { version: VERSIONS.overload, ...end(), kind: "overload", settings: told, ...measured };
  } finally {
    for (const caller of [flooding, floodingBare, other]) caller.close();
    await copy.stop();
    await bare.stop();
  }
}

/** The kernel may group sessions (sched(7), autogroup): then only the group's priority counts. */
function goFirst(): void {
  setPriority(GENERATOR_PRIORITY);
  if (existsSync(AUTOGROUP)) writeFileSync(AUTOGROUP, String(GENERATOR_PRIORITY));
}

interface Measured {
  copy: PrivateCopy;
  flooding: Caller;
  floodingBare: Caller;
  other: Caller;
}

async function measure({ copy, flooding, floodingBare, other }: Measured, seconds: number, note: Note) {
  const { slots } = copy.state();
  const mib = () => round(sum(pssByComponent(copy.state()).values()));
  await closedLoop(flooding, slots, WARM_UP_MS);
  const bestPerSecond = await closedLoop(flooding, slots, WARM_UP_MS);
  note(`best: ${bestPerSecond.toFixed(0)} runs a second`);
  const rate = TIMES_CAPACITY * bestPerSecond;
  const [besideBarePerSecond] = await Promise.all([
    closedLoop(flooding, slots, WARM_UP_MS),
    openLoop(floodingBare, rate, WARM_UP_MS),
  ]);
  await sleep(1000);
  const quiet = summarize(await inTurn(other, 10_000));
  note(`other principal: p99 ${quiet.p99.toFixed(1)} ms`);
  const before = mib();
  const length = seconds * 1000;
  const [flood, beside, first, last] = await Promise.all([
    openLoop(flooding, rate, length),
    sleep(1000).then(() => inTurn(other, length - 1000)),
    sleep(5000).then(mib),
    sleep(length - 2000).then(mib),
  ]);
  const firstAfterMs = await timedRun(other);
  const after = await inTurn(other, 10_000);
  return {
    bestPerSecond: round(bestPerSecond),
    besideBarePerSecond: round(besideBarePerSecond),
    ...{ quiet, beside: summarize(beside), after: summarize(after), flood },
    mib: { before, first, last },
    firstAfterMs: round(firstAfterMs),
  };
}

async function timedRun(caller: Caller): Promise<number> {
  const { status, ms, error } = await caller.run();
  if (status !== 200) throw new Error(`a run was answered with ${status} ${error}`);
  return ms;
}

/** Milliseconds of runs one after the other. */
async function inTurn(caller: Caller, length: number): Promise<number[]> {
  const samples: number[] = [];
  for (const end = performance.now() + length; performance.now() < end; )
    samples.push(await timedRun(caller));
  return samples;
}

/** Runs per second with this number in flight. */
async function closedLoop(caller: Caller, inFlight: number, length: number): Promise<number> {
  const began = performance.now();
  const counts = await Promise.all(
    Array.from({ length: inFlight }, async () => (await inTurn(caller, length)).length),
  );
  return sum(counts) / ((performance.now() - began) / 1000);
}

/** Sends this number of requests per second, whether or not earlier ones were answered. Ends with the first request that fails. */
export async function openLoop(
  caller: Pick<Caller, "run">,
  perSecond: number,
  length: number,
): Promise<Offered> {
  const seen: Seen[] = [];
  const failures: unknown[] = [];
  const open = new Set<Promise<unknown>>();
  const began = performance.now();
  let due = 0;
  let sent = 0;
  for (let now = began; now < began + length && failures.length === 0; now = performance.now()) {
    const wanted = ((now - began) / 1000) * perSecond;
    for (; due < wanted; due++) {
      if (open.size >= MOST_OPEN) continue;
      sent++;
      const one: Promise<unknown> = caller
        .run()
        .then(
          (answer) => seen.push(answer),
          (error: unknown) => failures.push(error),
        )
        .finally(() => open.delete(one));
      open.add(one);
    }
    await sleep(TICK_MS);
  }
  const admittedInTime = seen.filter(({ status }) => status === 200).length;
  await Promise.all(open);
  if (failures.length > 0) throw failures[0];
  return offered(seen, { sent, seconds: length / 1000, admittedPerSecond: admittedInTime / (length / 1000) });
}

export function offered(
  seen: readonly Seen[],
  { sent, seconds, admittedPerSecond }: Pick<Offered, "sent" | "seconds" | "admittedPerSecond">,
): Offered {
  const admitted = seen.filter(({ status }) => status === 200);
  const refused = seen.filter(({ status }) => status !== 200);
  const refusals: Record<string, number> = {};
  for (const { status, error } of refused) {
    const name = `${status} ${error}`;
    refusals[name] = (refusals[name] ?? 0) + 1;
  }
  return {
    ...{ seconds, sent, admittedPerSecond: round(admittedPerSecond), refusals },
    admitted: admitted.length,
    refused: refused.length,
    refusalMs: withoutSamples(summarize(refused.map(({ ms }) => ms))),
    admittedMs: withoutSamples(summarize(admitted.map(({ ms }) => ms))),
    withoutRetryAfter: refused.filter(({ retryAfter }) => !(retryAfter !== undefined && retryAfter >= 1))
      .length,
  };
}

/** Drops the samples, because there are as many as requests. */
const withoutSamples = (summary: Summary): Summary => ({ ...summary, samples: [] });
