/** One run of a schedule over a system under load: what did not hold, as sentences. Afterwards the system must be as it was. */
import { Api } from "@svc/test-kit/system/api";
import { type Holdings, settledHoldings, untilHeldAsBefore } from "@svc/test-kit/system/holdings";
import { until } from "@svc/test-kit/system/processes";
import { Redis } from "ioredis";
import { burst, files, leaving, plain, tools, twice } from "./chains.ts";
import { type Rules, violations, violationsOfPair, violationsOfSession } from "./checker.ts";
import { inject } from "./injector.ts";
import { type Chain, loadFor, Seen } from "./load.ts";
import type { Fault } from "./schedule.ts";
import { sessionStep } from "./sessions.ts";
import { type ChaosSystem, LONGEST_MS, SEATS, SLOTS } from "./system.ts";

/** A runner that started with a clock that was ahead takes what is signed after that time. */
const HEALED_MS = 90_000;
const RULES: Rules = { longestMs: LONGEST_MS, healingMs: 20_000, slots: SLOTS };
/** Connections that are kept for the next request. */
const POOLED = 40;
/** Lists and sets of jobs exist while something is in them. */
const OF_OPEN_JOBS = /^bull:[\w-]+:(wait|paused|prioritized|delayed|active)$/;
/** The queue removes its jobs by itself; the rest is one key each, whose members go. */
const FOR_EVER = /^(bull:|svc:runtimes$|svc:sessions:snapshots$)/;
const LANES: readonly (readonly Chain[])[] = [
  [plain],
  [plain, leaving],
  [files],
  [tools],
  [tools, twice],
  [sessionStep],
  [plain, burst, leaving],
];

export interface Run {
  seed: number;
  seconds: number;
  faults: readonly Fault[];
  /** In the tokens: no two runs of a system have the same. */
  name: string;
}

export interface Ran {
  violations: string[];
  /** How often each kind of request ended how. */
  counts: Record<string, number>;
}

/** What the system holds when it is warm and idle, for all runs of it. */
export async function warmedUp({ system }: ChaosSystem): Promise<Holdings> {
  const seen = new Seen("warm");
  await loadFor(2000, { api: new Api(system.url), seen, seed: 0 }, LANES);
  const found = violations(seen.ended, [], RULES);
  if (found.length > 0) throw new Error(`before any fault:\n${found.join("\n")}`);
  return settledHoldings(system);
}

export async function run(
  chaos: ChaosSystem,
  before: Holdings,
  { seed, seconds, faults, name }: Run,
): Promise<Ran> {
  const api = new Api(chaos.system.url);
  const seen = new Seen(name);
  const [happened] = await Promise.all([
    inject(chaos, faults, seen.began),
    loadFor(seconds * 1000, { api, seen, seed }, LANES),
  ]);
  const found = [
    ...violations(seen.ended, happened, RULES),
    ...[...seen.sessions].flatMap(([session, steps]) => violationsOfSession(session, steps, happened)),
    ...seen.pairs.flatMap((pair) => violationsOfPair(pair, happened, RULES)),
    ...seen.problems,
    ...(await violationsAfter(chaos, before)),
  ];
  return { violations: found, counts: countsOf(seen) };
}

/** The system heals by itself, gives every seat back, and holds what it held before. */
async function violationsAfter({ system, redis }: ChaosSystem, before: Holdings): Promise<string[]> {
  const api = new Api(system.url);
  const steps: [string, () => Promise<void>][] = [
    ["it does not heal", () => until(() => works(api), HEALED_MS)],
    ["seats are not given back", () => until(() => allSeats(api), HEALED_MS)],
    ["something is left in Redis", () => redisHolds(redis.socket)],
    ["something is left", () => untilHeldAsBefore(system, before, POOLED, { withinMs: HEALED_MS })],
  ];
  for (const [what, step] of steps) {
    try {
      await step();
    } catch (error) {
      return [`${what}: ${(error as Error).message}`];
    }
  }
  return [];
}

/** Jobs that wait or run, and keys that never go. */
export async function redisHolds(socket: string): Promise<void> {
  const redis = new Redis(socket);
  let left: string[] = [];
  const look = async () => {
    const keys = await redis.keys("*");
    const ttls = await Promise.all(keys.map((key) => redis.ttl(key)));
    left = keys.filter((key, at) => OF_OPEN_JOBS.test(key) || (ttls[at] === -1 && !FOR_EVER.test(key)));
    return left.length === 0;
  };
  try {
    await until(look, HEALED_MS, () => left);
  } finally {
    redis.disconnect();
  }
}

let looks = 0;

async function works(api: Api): Promise<boolean> {
  const seen = new Seen(`healed.${++looks}`);
  const lane = { api, seen, at: 0, next: () => 0 };
  await Promise.all([plain, files, tools, twice, sessionStep].map((chain) => chain(lane)));
  return seen.ended.every(({ outcome }) => outcome.as === "right");
}

async function allSeats(api: Api): Promise<boolean> {
  const body = { lang: "bash", code: "true", run_timeout: 5000 };
  const answers = await Promise.all(Array.from({ length: SEATS }, () => api.tryExec(body)));
  return answers.every(({ status }) => status === 200);
}

export function countsOf(seen: Seen): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind, outcome } of seen.ended) {
    const how = outcome.as === "refused" ? `${outcome.status} ${outcome.code}` : outcome.as;
    const name = `${kind}: ${how}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).toSorted());
}
