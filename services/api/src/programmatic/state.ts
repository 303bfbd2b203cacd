/**
 * The states of a program that calls tools, and every transition between them, as data. The record in Redis
 * (`svc:ptc:<execution id>`, store.ts) is the source of truth for a program; its list of calls (`:history`) is the one for each call.
 * Pure.
 *
 * Copies of a call exist elsewhere, and none of them decides what a caller sees:
 * - tool call server (`svc:tool:<execution id>:*`): the calls of the current attempt, where the gateway correlates them with
 *   the paused execution and a pause of more than a second waits for results;
 * - egress ledger (`tool_call_ids`): which calls were charged, so that a repeated request is not charged again;
 * - runner (CallHistory): the calls of the process in its jail. It is built from `:history` when a program is run again.
 */
import {
  type ErrorCode,
  type InlineJobFile,
  type JobFile,
  type Principal,
  ServiceError,
  type Tool,
  type TraceContext,
} from "@svc/contracts";

export const STATES = [
  "created",
  "running",
  "paused",
  "resuming",
  "completed",
  "failed",
  "cancelled",
  "expired",
] as const;
export type State = (typeof STATES)[number];

export const EVENTS = [
  /** The first round is queued. */
  "start",
  /** The round ended with calls that need results. */
  "pause",
  /** The caller sent results for the last pause. */
  "results",
  /** The caller sent results that differ from those already accepted for that pause. */
  "other_results",
  /** The attempt to make the round failed; another attempt follows. */
  "retry",
  /** The program ended successfully. */
  "complete",
  /** The program ended with an error, or cannot go on. */
  "fail",
  "cancel",
  /** The record reached the end of its life. */
  "expire",
] as const;
export type Event = (typeof EVENTS)[number];

export type Transition =
  /** `by`: the module that makes the transition. `stored`: whether it is one run of lua/transition.lua. */
  { next: State; by: string; stored: boolean } | { refused: ErrorCode };

const to = (next: State, by: string): Transition => ({ next, by, stored: true });
/** Before its first pause a program is not stored: it has no token yet, and its caller still waits for the start. */
const inProcess = (next: State, by: string): Transition => ({ next, by, stored: false });
const refused = (code: ErrorCode): Transition => ({ refused: code });

/** Redis removes the record when its TTL ends. */
const expires = inProcess("expired", "expiry");
/** Only a record that exists expires. */
const stays = (state: State): Transition => inProcess(state, "expiry");
const unknown = refused("execution_expired");
/** The reporting attempt no longer owns the round: another attempt was faster, or Redis came back with an earlier record. */
const overtaken = refused("store_unavailable");
const cancelled = refused("execution_cancelled");

/** Transitions of a program that is over. */
const ENDED = {
  start: overtaken,
  pause: overtaken,
  results: unknown,
  other_results: unknown,
  retry: overtaken,
  complete: overtaken,
  fail: overtaken,
} as const;

export const TRANSITIONS: Readonly<Record<State, Readonly<Record<Event, Transition>>>> = {
  created: {
    ...ENDED,
    start: inProcess("running", "start"),
    fail: inProcess("failed", "start"),
    cancel: inProcess("cancelled", "cancel"),
    expire: stays("created"),
  },
  running: {
    ...ENDED,
    pause: to("paused", "pause"),
    retry: inProcess("running", "start"),
    complete: inProcess("completed", "completion"),
    fail: inProcess("failed", "completion"),
    cancel: inProcess("cancelled", "cancel"),
    expire: stays("running"),
  },
  paused: {
    ...ENDED,
    results: to("resuming", "accept-results"),
    other_results: to("resuming", "accept-results"),
    cancel: to("cancelled", "cancel"),
    expire: expires,
  },
  resuming: {
    start: overtaken,
    pause: to("paused", "pause"),
    results: inProcess("resuming", "accept-results"),
    other_results: refused("continuation_conflict"),
    retry: to("resuming", "resume"),
    complete: to("completed", "completion"),
    fail: to("failed", "completion"),
    cancel: to("cancelled", "cancel"),
    expire: expires,
  },
  completed: { ...ENDED, cancel: inProcess("completed", "cancel"), expire: expires },
  failed: { ...ENDED, cancel: inProcess("failed", "cancel"), expire: expires },
  cancelled: {
    ...ENDED,
    pause: cancelled,
    retry: cancelled,
    complete: cancelled,
    fail: cancelled,
    cancel: inProcess("cancelled", "cancel"),
    expire: expires,
  },
  // Nobody cancelled a program whose record was lost.
  expired: {
    start: overtaken,
    pause: unknown,
    results: unknown,
    other_results: unknown,
    retry: unknown,
    complete: unknown,
    fail: unknown,
    cancel: inProcess("expired", "cancel"),
    expire: expires,
  },
};

/** The state after an event, or the error with which the event is refused. */
export function nextState(state: State, event: Event): State {
  const transition = TRANSITIONS[state][event];
  if ("refused" in transition) throw new ServiceError(transition.refused);
  return transition.next;
}

/** States that a record may have. In the other states there is no record. */
export type StoredState = Exclude<State, "created" | "running" | "expired">;

/** The immutable part of a program: enough to run it again from the top. JSON in Redis. */
export interface Program {
  v: 1;
  execution_id: string;
  session_id: string;
  principal: Principal;
  output_namespace: string;
  language: string;
  version: string;
  code: string;
  args: string[];
  stdin?: string;
  /** Limit of one round, ms. */
  run_timeout: number;
  /** By the caller's plan, bytes. */
  run_memory_limit?: number;
  files: JobFile[];
  inline?: InlineJobFile[];
  /** `NAME=value`. */
  env?: string[];
  tools: Tool[];
  hash_seed: number;
  /** The label with which the caller may cancel it. */
  label?: string;
  /** Trace context of the request that started it, if that was traced. */
  trace?: TraceContext;
}

/** A call without a result, and its index in the list of calls. */
export interface PendingEntry {
  call_id: string;
  at: number;
}

/** Live: the paused program goes on. Replay: the program runs again from the top with the recorded results. */
export type Mode = "live" | "replay";

/** The mutable part of a program. JSON in Redis, written only by lua/transition.lua. */
export interface ProgramRecord {
  status: StoredState;
  /** Rounds that ended with an answer; the token of the last pause holds this number. */
  round: number;
  pending: PendingEntry[];
  /** The runner that keeps the frozen program; absent when none does. */
  runner_url?: string;
  /** The grant whose budget pays for the calls of the attempt that paused last. */
  grant_id?: string;
  /** ms since 1970. */
  paused_at: number;
  /** Characters of output in the answer of the last pause. */
  told?: { stdout: number; stderr: number };
  /** Run time of the attempt that paused last, ms. */
  run_ms: number;
  /** Number of calls in the list. */
  calls: number;
  /** The largest number in the ids of the calls; absent in a record of an earlier version. */
  highest_call?: number;
  /** Bytes of the text of all results. */
  history_bytes: number;
  /** Bytes of the program and its calls without results. */
  state_bytes: number;
  /** Bytes of the program, its calls and their results, as stored in all places; absent in a record of an earlier version. */
  stored_bytes?: number;
  /** Bytes of all stored answers to resumes. */
  answer_bytes?: number;
  /** Namespace of the principal to whose stored bytes all of these count; absent in a record of an earlier version. */
  owner?: string;
  /** While resuming: the digest of the accepted results, and the current attempt, counted from 1. */
  attempt?: { results: string; mode: Mode; number: number };
}
