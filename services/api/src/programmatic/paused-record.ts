/**
 * Turns a runner's report of a pause into the stored record and calls. The runner is not trusted. These checks hold: a call names a
 * declared tool, is new only once and stays pending until it has its result, and a program makes no more calls than allowed.
 */
import { setImmediate as turn } from "node:timers/promises";
import {
  callNumberOf,
  canonicalArguments,
  type PausedCall,
  type PausedResponse,
  type RecordedCall,
  ServiceError,
} from "@svc/contracts";
import { nextState, type PendingEntry, type Program, type ProgramRecord } from "./state.ts";
import { bytesOf, storedBytesOf } from "./store.ts";

/** Characters of arguments that are serialized without yielding to the event loop: some milliseconds, whatever they contain. */
const AT_ONCE_CHARS = 65_536;

/** The calls in the report of the pause itself; undefined if any is missing or not acceptable. Tools must be declared. Pure. */
export function reportedCalls(
  { tools }: Pick<Program, "tools">,
  paused: PausedResponse,
): readonly PausedCall[] | undefined {
  const { pending_calls: calls, pending_call_ids: ids } = paused;
  if (calls === undefined || calls.length !== ids.length) return undefined;
  const isAcceptable = ({ call_id, tool_name, tool_input }: PausedCall, at: number) =>
    call_id === ids[at] &&
    tools.some(({ name }) => name === tool_name) &&
    typeof tool_input === "object" &&
    tool_input !== null &&
    !Array.isArray(tool_input);
  return calls.every(isAcceptable) ? calls : undefined;
}

export interface Outstanding {
  /** All pending calls, in the order of the pause. */
  pending: PendingEntry[];
  /** Ids of the new calls. */
  added: ReadonlySet<string>;
  /** The largest number in the ids of the program's calls. */
  highest: number;
}

/**
 * Finds the index of each call of a pause in the list of calls. `answered`: the calls that got their results since the last pause. Ids
 * count upwards, so a new id is above all others. Throws sandbox_execution_failed for a report that only a compromised runner sends. It
 * throws also when PTC_MAX_CALLS (`maxCalls`) was lowered after the program began; the program then runs from the top with that limit. Pure.
 */
export function outstandingCalls(
  before: ProgramRecord | undefined,
  ids: readonly string[],
  answered: readonly string[],
  maxCalls: number,
): Outstanding {
  const places = new Map(before?.pending.map(({ call_id, at }) => [call_id, at]));
  let highest = before === undefined ? 0 : highestOf(before);
  for (const id of answered) places.delete(id);
  const recorded = before?.calls ?? 0;
  const added = new Set<string>();
  const pending = ids.map((call_id) => {
    const place = places.get(call_id);
    if (place !== undefined) return { call_id, at: place };
    const number = callNumberOf(call_id);
    if (number <= highest) throw impossible(`${call_id} is no new call`);
    highest = number;
    added.add(call_id);
    return { call_id, at: recorded + added.size - 1 };
  });
  if (added.size > 0 && recorded + added.size > maxCalls)
    throw impossible(`more than ${maxCalls} calls were made`);
  return { pending, added, highest };
}

/** A record of an earlier version has no `highest_call`; then it is at least the number of calls. */
const highestOf = ({ highest_call, calls, pending }: ProgramRecord) =>
  highest_call ?? Math.max(calls, ...pending.map(({ call_id }) => callNumberOf(call_id)));

const impossible = (cause: string) => new ServiceError("sandbox_execution_failed", undefined, { cause });

/** Calls in their stored form. Yields to the event loop between large ones. */
export async function recordedCalls(calls: readonly PausedCall[]): Promise<RecordedCall[]> {
  const recorded: RecordedCall[] = [];
  let chars = 0;
  for (const { call_id, tool_name, tool_input } of calls) {
    if (chars > AT_ONCE_CHARS) {
      await turn();
      chars = 0;
    }
    const input_json = canonicalArguments(tool_input);
    chars += input_json.length;
    recorded.push({ call_id, name: tool_name, input_json });
  }
  return recorded;
}

/** The record after a pause with these new calls. `stateBytes`: the size before they are added. Pure. */
export function pausedRecord(
  before: ProgramRecord | undefined,
  paused: PausedResponse,
  { pending, highest }: Outstanding,
  { added, stateBytes }: { added: readonly RecordedCall[]; stateBytes: number },
): ProgramRecord {
  const storedBefore = before?.stored_bytes ?? stateBytes + (before?.history_bytes ?? 0);
  return {
    status: nextState(before?.status ?? "running", "pause") as "paused",
    round: (before?.round ?? 0) + 1,
    pending,
    runner_url: paused.runner_url,
    paused_at: Date.now(),
    told: { stdout: paused.stdout.length, stderr: paused.stderr.length },
    run_ms: paused.execution_time,
    calls: (before?.calls ?? 0) + added.length,
    highest_call: highest,
    history_bytes: before?.history_bytes ?? 0,
    state_bytes: added.reduce((sum, call) => sum + bytesOf(call), stateBytes),
    stored_bytes: added.reduce((sum, call) => sum + storedBytesOf(call), storedBefore),
  };
}
