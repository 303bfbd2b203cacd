/**
 * The transition from paused to resuming: accepts a caller's results for a pause, once. The results are stored before they are used,
 * so that another replica can finish the round.
 */
import { hash } from "node:crypto";
import {
  type CallAnswer,
  canonicalArguments,
  roundLifeMs,
  ServiceError,
  type ToolResult,
} from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { ProgrammaticMetrics } from "./metrics.ts";
import { invalidToolResults } from "./request.ts";
import { type Mode, nextState, type ProgramRecord } from "./state.ts";
import { type Change, type ProgramStore, type Snapshot, type Stored, storedBytesOf } from "./store.ts";
import type { Continuation } from "./token.ts";

export interface AcceptDeps {
  config: Config;
  store: ProgramStore;
  metrics: ProgrammaticMetrics;
}

const DEFAULT_ERROR_MESSAGE = "tool execution failed";
const OVERSIZE = { tool_result_too_large: "result", tool_history_too_large: "history" } as const;

/** The results of one request for one pause. */
export class AcceptedResults {
  /** Independent of the order of the results. */
  readonly digest: string;
  /** Bytes of their canonical text. */
  readonly bytes: number;
  readonly #deps: AcceptDeps;
  readonly #id: string;
  readonly #round: number;
  readonly #results: readonly ToolResult[];
  #answers: readonly CallAnswer[] | undefined;

  constructor(deps: AcceptDeps, { executionId, round }: Continuation, results: readonly ToolResult[]) {
    this.#deps = deps;
    this.#id = executionId;
    this.#round = round;
    this.#results = results;
    const text = canonicalResults(results);
    this.digest = hash("sha256", text, "base64url");
    this.bytes = Buffer.byteLength(text);
  }

  /** Built only when this request makes the round, so that a waiting request holds its results only once. */
  get answers(): readonly CallAnswer[] {
    this.#answers ??= answersOf(this.#results);
    return this.#answers;
  }

  /** Stores the results, unless an earlier attempt stored the same ones. Only the owner of the idempotency entry may call this. */
  async accept(): Promise<Stored> {
    const { store } = this.#deps;
    const { snapshot, program } = await store.read(this.#id);
    if (snapshot?.record.round !== this.#round || program === undefined) {
      throw new ServiceError("execution_expired");
    }
    const { status, attempt } = snapshot.record;
    const isSame = attempt === undefined || attempt.results === this.digest;
    nextState(status, isSame ? "results" : "other_results");
    if (status === "resuming") return { program, snapshot };
    return { program, snapshot: await store.advance(this.#id, this.#counted(snapshot)) };
  }

  #counted(snapshot: Snapshot): Change {
    try {
      return this.#change(snapshot);
    } catch (error) {
      const code = (error as ServiceError).code as keyof typeof OVERSIZE;
      if (Object.hasOwn(OVERSIZE, code)) this.#deps.metrics.oversize.inc({ kind: OVERSIZE[code] });
      throw error;
    }
  }

  #change(from: Snapshot): Change {
    const { config } = this.#deps;
    const { record } = from;
    checkPending(
      this.#results,
      record.pending.map(({ call_id }) => call_id),
    );
    const history_bytes = historyBytes(record.history_bytes, this.answers, {
      maxResultBytes: config.PTC_MAX_RESULT_BYTES,
      maxHistoryBytes: config.PTC_MAX_HISTORY_BYTES,
    });
    const byId = new Map(this.answers.map(({ call_id, outcome }) => [call_id, outcome]));
    const outcomes = record.pending.flatMap(({ call_id, at }) => {
      const outcome = byId.get(call_id);
      return outcome === undefined ? [] : [{ at, outcome }];
    });
    const stored = record.stored_bytes ?? record.state_bytes + record.history_bytes;
    const to: ProgramRecord = {
      ...record,
      status: nextState(record.status, "results") as "resuming",
      history_bytes,
      stored_bytes: outcomes.reduce((sum, { outcome }) => sum + storedBytesOf(outcome), stored),
      attempt: { results: this.digest, mode: modeOf(record, config), number: 1 },
    };
    return { from, to, outcomes, lifeMs: roundLifeMs(config) };
  }
}

/** The mode of the next attempt to resume a program. */
export function modeOf({ runner_url, paused_at }: ProgramRecord, config: Config): Mode {
  const isKept = runner_url !== undefined && Date.now() - paused_at < config.TOOL_CALL_REQUEST_TIMEOUT;
  return isKept ? "live" : "replay";
}

export function answersOf(results: readonly ToolResult[]): CallAnswer[] {
  return results.map(({ call_id, result, is_error, error_message }) => ({
    call_id,
    outcome: is_error
      ? { error_message: error_message ?? DEFAULT_ERROR_MESSAGE }
      : { result_json: JSON.stringify(result ?? null) },
  }));
}

/** A text that does not depend on the order of the results or of the keys in them. */
export function canonicalResults(results: readonly ToolResult[]): string {
  return results
    .map(({ call_id, result, is_error, error_message }) =>
      canonicalArguments([
        call_id,
        result ?? null,
        is_error === true,
        error_message ?? DEFAULT_ERROR_MESSAGE,
      ]),
    )
    .sort()
    .join("\n");
}

/** Refuses answers to calls that are not pending, and two answers to one call. */
export function checkPending(results: readonly ToolResult[], pending: readonly string[]): void {
  const open = new Set(pending);
  const details = results.flatMap(({ call_id }, at) =>
    open.delete(call_id)
      ? []
      : [
          {
            path: `tool_results[${at}].call_id`,
            problem: pending.includes(call_id) ? "is answered twice" : "is not a pending call",
          },
        ],
  );
  if (details.length > 0) throw invalidToolResults(details);
}

export interface ResultLimits {
  maxResultBytes: number;
  maxHistoryBytes: number;
}

/** Bytes of the text of all outcomes so far, including these. Throws when a limit is exceeded. */
export function historyBytes(before: number, answers: readonly CallAnswer[], limits: ResultLimits): number {
  let total = before;
  for (const { call_id, outcome } of answers) {
    const bytes = outcomeBytes(outcome);
    if (bytes > limits.maxResultBytes) {
      throw new ServiceError(
        "tool_result_too_large",
        `The result of ${call_id.slice(0, 64)} has ${bytes} bytes; ${limits.maxResultBytes} are allowed.`,
      );
    }
    total += bytes;
  }
  if (total > limits.maxHistoryBytes) throw new ServiceError("tool_history_too_large");
  return total;
}

export const outcomeBytes = (outcome: CallAnswer["outcome"]) =>
  Buffer.byteLength("result_json" in outcome ? outcome.result_json : outcome.error_message);
