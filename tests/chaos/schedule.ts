/** Which fault comes when: a function of a seed and a number of seconds alone. Pure. */
import { between, oneOf, random } from "./random.ts";

export const COMPONENTS = [
  "api",
  "worker",
  "runner",
  "jaild",
  "file-server",
  "egress-gateway",
  "tool-call-server",
  "redis",
] as const;
export type ComponentOfChaos = (typeof COMPONENTS)[number];

/** Services whose clocks are stepped. */
export const CLOCKS = [
  "api",
  "worker",
  "runner",
  "file-server",
  "egress-gateway",
  "tool-call-server",
] as const satisfies readonly ComponentOfChaos[];
export type ClockOfChaos = (typeof CLOCKS)[number];

/** Each connection between two components: who opens it, and to whom. */
export const LINKS = [
  "api>redis",
  "worker>redis",
  "egress-gateway>redis",
  "tool-call-server>redis",
  "api>file-server",
  "api>tool-call-server",
  "worker>runner",
  "worker>egress-gateway",
  "runner>egress-gateway",
  "egress-gateway>file-server",
  "egress-gateway>tool-call-server",
] as const;
export type Link = (typeof LINKS)[number];

/** Two file systems that the faults fill: one for stored objects, one for the data folder with its logs and sockets. */
export const DISKS = ["objects", "data"] as const;
export type Disk = (typeof DISKS)[number];

/** `atMs` after the load has begun. What lasts is taken back after `forMs`. */
export type Fault = { atMs: number; forMs: number } & (
  | { what: "kill" | "stop"; where: ComponentOfChaos }
  /** Its connections end, and no new one is had. */
  | { what: "cut"; where: Link }
  /** Nothing goes through, and the connections stay open. */
  | { what: "hang"; where: Link }
  /** Every piece of it comes late. */
  | { what: "slow"; where: Link; byMs: number }
  | { what: "fill"; where: Disk }
  /** Redis is killed and comes back with nothing of what it held. */
  | { what: "empty"; where: "redis" }
  /** Its wall clock is so far ahead of all others; negative: behind them. */
  | { what: "step"; where: ClockOfChaos; byMs: number }
);

const FIRST_MS = 500;
/** Between two faults, in the middle. */
const PAUSE_MS = 1500;
const LONGEST_MS = 4000;
const KINDS = ["kill", "kill", "kill", "stop", "stop", "cut", "cut", "hang", "slow", "fill"] as const;
/** Of all schedules so many have Redis lose what it held: once, for much is allowed from then on. */
const EMPTIED = 0.15;
/** Of all schedules so many have clocks that are stepped, one after the other. */
const STEPPED = 0.5;
const STEPS_PAUSE_MS = 10_000;
const LEAST_STEP_MS = 2000;
const LARGEST_STEP_MS = 60_000;

export function scheduleOf(seed: number, seconds: number): Fault[] {
  const next = random("schedule", seed);
  const endMs = seconds * 1000;
  const faults: Fault[] = [];
  for (let atMs = FIRST_MS; ; ) {
    atMs += Math.round(-Math.log(1 - next()) * PAUSE_MS);
    if (atMs >= endMs) break;
    faults.push(faultAt(atMs, Math.min(LONGEST_MS, endMs - atMs), next));
  }
  if (next() < EMPTIED)
    faults.push({ atMs: between(FIRST_MS, endMs, next), forMs: 0, what: "empty", where: "redis" });
  return [...faults, ...stepsOf(seed, endMs)].sort((one, other) => one.atMs - other.atMs);
}

/** By numbers of their own. Never two clocks are wrong at once. */
function stepsOf(seed: number, endMs: number): Fault[] {
  const next = random("steps", seed);
  const steps: Fault[] = [];
  if (next() >= STEPPED) return steps;
  for (let atMs = FIRST_MS; ; ) {
    atMs += Math.round(next() * STEPS_PAUSE_MS);
    if (atMs >= endMs) return steps;
    const forMs = between(0, Math.min(2 * LONGEST_MS, endMs - atMs), next);
    const byMs = between(LEAST_STEP_MS, LARGEST_STEP_MS, next) * (next() < 0.5 ? 1 : -1);
    steps.push({ atMs, forMs, what: "step", where: oneOf(CLOCKS, next), byMs });
    atMs += forMs;
  }
}

function faultAt(atMs: number, mostMs: number, next: () => number): Fault {
  const what = oneOf(KINDS, next);
  const forMs = between(Math.min(200, mostMs), mostMs, next);
  switch (what) {
    case "kill":
      return { atMs, forMs: 0, what, where: oneOf(COMPONENTS, next) };
    case "stop":
      return { atMs, forMs, what, where: oneOf(COMPONENTS, next) };
    case "cut":
      // Half of the cuts are over at once: connections end, and the next ones are had.
      return { atMs, forMs: next() < 0.5 ? 0 : forMs, what, where: oneOf(LINKS, next) };
    case "hang":
      return { atMs, forMs, what, where: oneOf(LINKS, next) };
    case "slow":
      return { atMs, forMs, what, where: oneOf(LINKS, next), byMs: between(5, 300, next) };
    case "fill":
      return { atMs, forMs, what, where: oneOf(DISKS, next) };
  }
}

const seconds = (ms: number) => (ms / 1000).toFixed(1);

function amount(fault: Fault): string {
  if (fault.what === "slow") return ` by ${fault.byMs} ms`;
  return fault.what === "step" ? ` by ${seconds(fault.byMs)} s` : "";
}

/** A line for a person: what happens, when and for how long. */
export function described(fault: Fault): string {
  const lasting = fault.forMs > 0 ? ` for ${seconds(fault.forMs)} s` : "";
  return `at ${seconds(fault.atMs)} s: ${fault.what} ${fault.where}${amount(fault)}${lasting}`;
}
