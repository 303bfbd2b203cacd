/**
 * From what a runner says of a pause to the record and the calls that are stored. Nobody believes the runner: a call is of a declared tool,
 * is new once and waits until it has its result, and there are no more of them than a program may make.
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

/** Characters of arguments that are written in one go: some milliseconds, whatever they hold. */
const AT_ONCE_CHARS = 65_536;

/** The calls that the pause itself reports. Only calls of declared tools are accepted. Pure. */
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
  /** All calls, in the order of the pause. */
  pending: PendingEntry[];
  /** Ids of those that are new. */
  added: ReadonlySet<string>;
  /** The largest number in an id of the program's calls. */
  highest: number;
}

/**
 * Where the calls of a pause are in the list of calls. `answered`: those that have their results since the pause before. Ids count upwards,
 * so one that is new is above all others. Throws sandbox_execution_failed for what only a runner that was taken over says; after PTC_MAX_CALLS
 * (`maxCalls`) was lowered also for a program that began before, which is run from the top then and is told its limit. Pure.
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

/** In a record of an earlier version it is at least the number of calls. */
const highestOf = ({ highest_call, calls, pending }: ProgramRecord) =>
  highest_call ?? Math.max(calls, ...pending.map(({ call_id }) => callNumberOf(call_id)));

const impossible = (cause: string) => new ServiceError("sandbox_execution_failed", undefined, { cause });

/** Calls as they are kept. Other work goes on between large ones. */
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

/** The record after a pause with these new calls. `stateBytes`: before them. Pure. */
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
