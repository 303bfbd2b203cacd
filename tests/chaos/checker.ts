/**
 * What must hold whatever faults come, judged by what clients saw: every accepted request ended once, in time and truthfully. Knows
 * nothing of the running system. Pure.
 */

import { isErrorCode } from "@svc/contracts";
import { ADVICE } from "@svc/contracts/error-advice";
import { CLOCK_TOLERANCE_MS } from "@svc/service-kit/health/clock";
import type { Fault } from "./schedule.ts";

/** How a request ended for its client. */
export type Outcome =
  /** Exactly what its program must say. `ran`: when the program ran, by the machine's own clock. */
  | { as: "right"; ran?: Span }
  | { as: "refused"; status: number; code: string; retryAfter: string | null }
  /** The connection ended without an answer. */
  | { as: "lost"; why: string }
  /** The client left by itself. */
  | { as: "left" }
  /** No answer came in time. */
  | { as: "silent" }
  | { as: "wrong"; found: string };

/** Of two clocks that are compared: whole seconds, and the way in between. */
const LOOK_MS = 2000;

export interface Span {
  fromMs: number;
  toMs: number;
}

/** Times are in ms since the load began. */
export interface Ended extends Span {
  /** Is in no other request. */
  token: string;
  kind: string;
  outcome: Outcome;
}

export interface Rules {
  /** No request waits longer. */
  longestMs: number;
  /** So long after a fault was taken back requests may still be refused because of it. */
  healingMs: number;
  /** Programs that may run at once. */
  slots: number;
}

/** A sentence for each thing that does not hold. */
export function violations(ended: readonly Ended[], faults: readonly Fault[], rules: Rules): string[] {
  return [...ended.flatMap((one) => violationsOf(one, faults, rules)), ...crowding(ended, rules.slots)];
}

function violationsOf(one: Ended, faults: readonly Fault[], rules: Rules): string[] {
  const { outcome } = one;
  const said = (what: string) => [
    `${one.kind} ${one.token}, ${seconds(one.fromMs)} s to ${seconds(one.toMs)} s: ${what}`,
  ];
  if (one.toMs - one.fromMs > rules.longestMs) return said(`no answer within ${rules.longestMs} ms`);
  switch (outcome.as) {
    case "silent":
      return said("no answer at all");
    case "wrong":
      return said(`wrong: ${outcome.found}`);
    case "lost":
      return faults.some((fault) => isEndOfApi(fault) && meets(one, fault, 0))
        ? []
        : said(`the connection was lost (${outcome.why}) though no API ended`);
    case "refused": {
      if (isForgotten(one, faults)) return [];
      const problem = problemOf(outcome);
      if (problem !== undefined) return said(problem);
      return faults.some((fault) => mayRefuse(fault) && meets(one, fault, rules.healingMs + lateMs(fault)))
        ? []
        : said(`refused (${outcome.status} ${outcome.code}) though nothing was wrong`);
    }
    default:
      return [];
  }
}

/** A Redis without what it held knows no paused program. */
const isForgotten = ({ kind, outcome, toMs }: Ended, faults: readonly Fault[]) =>
  kind === "resume" &&
  outcome.as === "refused" &&
  outcome.code === "execution_expired" &&
  faults.some(({ what, atMs }) => what === "empty" && atMs <= toMs);

const seconds = (ms: number) => (ms / 1000).toFixed(2);

/** Clocks that differ by less are no reason to refuse anything. */
const mayRefuse = (fault: Fault) =>
  fault.what !== "step" || Math.abs(fault.byMs) > CLOCK_TOLERANCE_MS - LOOK_MS;

/** What was signed, or has started, while a clock was ahead is of the future until that time has come. */
const lateMs = (fault: Fault) => (fault.what === "step" ? Math.abs(fault.byMs) : 0);

/** The connections to the API are its process's. */
const isEndOfApi = ({ what, where }: Fault) => what === "kill" && where === "api";

/** Whether a request was under way while the fault lasted, or so long after it. */
const meets = ({ fromMs, toMs }: Span, { atMs, forMs }: Fault, afterMs: number) =>
  atMs <= toMs && fromMs <= atMs + forMs + afterMs;

/** Of a refusal: what it should have said. */
function problemOf({ status, code, retryAfter }: Outcome & { as: "refused" }): string | undefined {
  if (!isErrorCode(code)) return `refused with an unknown code: ${status} ${code}`;
  if (ADVICE[code].who === "component")
    return `refused with a code that is told between components: ${status} ${code}`;
  if (status < 500 && status !== 429) return `refused as if the caller were wrong: ${status} ${code}`;
  if ((status === 503 || status === 429) && !/^[1-9]\d*$/.test(retryAfter ?? ""))
    return `refused without Retry-After: ${status} ${code}`;
  return undefined;
}

/** More programs at once than there are slots. */
function crowding(ended: readonly Ended[], slots: number): string[] {
  const ran = ended.flatMap(({ outcome }) =>
    outcome.as === "right" && outcome.ran !== undefined ? [outcome.ran] : [],
  );
  const crowded = ran.find(
    ({ fromMs }) => ran.filter((other) => other.fromMs <= fromMs && fromMs < other.toMs).length > slots,
  );
  return crowded === undefined ? [] : [`more than ${slots} programs ran at once`];
}

/** Two requests with one key, sent at the same time, that both were answered. */
export interface Pair extends Span {
  token: string;
  isSame: boolean;
}

/** One key means one execution, where its answer could be kept. */
export function violationsOfPair(
  { token, isSame, ...span }: Pair,
  faults: readonly Fault[],
  rules: Rules,
): string[] {
  const mayBeForgotten = faults.some(
    (fault) =>
      fault.what !== "step" && /redis|^api$/.test(fault.where) && meets(span, fault, rules.healingMs),
  );
  return isSame || mayBeForgotten ? [] : [`same key ${token}: it ran twice`];
}

/** One run of a session, in the order of its client, who sends the next when one has ended. */
export interface Step extends Span {
  /** How many steps it found; undefined: it is not known how it ended. */
  found?: number;
  persisted?: boolean;
  restoreFailed?: boolean;
  conflict?: boolean;
}

/**
 * Follows the number of steps that a session may have. A step that ended in an unknown way may have been kept, and may still be
 * kept while later ones run: then these are told of a conflict.
 */
export function violationsOfSession(
  name: string,
  steps: readonly Step[],
  faults: readonly Fault[],
): string[] {
  const losses = faults.filter(({ what }) => what === "empty");
  let possible: ReadonlySet<number> = new Set([0]);
  let isUnknownUnderWay = false;
  let sinceMs = 0;
  for (const [at, { found, persisted, restoreFailed, conflict, fromMs, toMs }] of steps.entries()) {
    const afterLoss = losses.some(({ atMs, forMs }) => atMs <= toMs && sinceMs <= atMs + forMs);
    // What a step has left may be lost before it is answered.
    sinceMs = fromMs;
    const allowed = new Set(possible);
    if (afterLoss) allowed.add(0);
    if (found === undefined) {
      isUnknownUnderWay = true;
      possible = withNext(allowed);
      continue;
    }
    if (restoreFailed) {
      if (found !== 0 || persisted)
        return [`session ${name}, step ${at}: not restored, and found ${found}, persisted: ${persisted}`];
      possible = isUnknownUnderWay ? withNext(allowed) : allowed;
      continue;
    }
    if (!allowed.has(found))
      return [`session ${name}, step ${at}: found ${found} steps, may have ${[...allowed].join(" or ")}`];
    if (conflict && !isUnknownUnderWay && !afterLoss)
      return [`session ${name}, step ${at}: a conflict, though no other run was under way`];
    if (persisted) {
      possible = new Set([found + 1]);
      // What began before can no longer be kept: the session has moved.
      isUnknownUnderWay = false;
    } else if (conflict) possible = new Set([found + 1]);
    else possible = isUnknownUnderWay ? new Set([found, found + 1]) : new Set([found]);
  }
  return [];
}

const withNext = (counts: Iterable<number>) => new Set([...counts].flatMap((count) => [count, count + 1]));
