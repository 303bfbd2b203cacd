/**
 * The calls of one attempt to run a program: the id of each, which are outstanding, and which recorded calls of earlier
 * attempts they repeat. A call takes the first unused record with its name and canonical arguments, so equal calls match in
 * issue order. New ids continue after the highest recorded one. Does no input or output.
 */
import {
  callIdOf,
  callNumberOf,
  canonicalArguments,
  MAX_ASKED_NAME,
  type ProgrammaticFault,
  type RecordedCall,
} from "@svc/contracts";

export type Issued =
  | { kind: "recorded"; callId: string; outcome: NonNullable<RecordedCall["outcome"]> }
  | { kind: "outstanding"; callId: string }
  | { kind: "fault"; fault: ProgrammaticFault };

export interface CallHistoryOptions {
  tools: Iterable<string>;
  /** Calls that may be made beyond the recorded ones. */
  maxCalls: number;
  recorded?: readonly RecordedCall[];
}

export class CallHistory {
  readonly #tools: ReadonlySet<string>;
  readonly #unused = new Map<string, RecordedCall[]>();
  readonly #outstanding = new Set<string>();
  #unusedCount: number;
  #left: number;
  #highest: number;
  #made = 0;

  constructor({ tools, maxCalls, recorded = [] }: CallHistoryOptions) {
    this.#tools = new Set(tools);
    this.#left = maxCalls;
    this.#unusedCount = recorded.length;
    this.#highest = 0;
    for (const record of recorded) {
      this.#highest = Math.max(this.#highest, callNumberOf(record.call_id));
      const key = keyOf(record.name, canonicalArguments(JSON.parse(record.input_json)));
      const same = this.#unused.get(key);
      if (same === undefined) this.#unused.set(key, [record]);
      else same.push(record);
    }
  }

  issue(name: string, input: object): Issued {
    if (!this.#tools.has(name)) {
      return { kind: "fault", fault: { type: "unregistered_tool", tool: name.slice(0, MAX_ASKED_NAME) } };
    }
    const record = this.#takeRecord(name, input);
    if (record === undefined && this.#left === 0) return { kind: "fault", fault: { type: "tool_limit" } };
    this.#made++;
    if (record?.outcome !== undefined) {
      return { kind: "recorded", callId: record.call_id, outcome: record.outcome };
    }
    const callId = record?.call_id ?? this.#newId();
    this.#outstanding.add(callId);
    return { kind: "outstanding", callId };
  }

  #takeRecord(name: string, input: object): RecordedCall | undefined {
    if (this.#unusedCount === 0) return undefined;
    const record = this.#unused.get(keyOf(name, canonicalArguments(input)))?.shift();
    if (record !== undefined) this.#unusedCount--;
    return record;
  }

  #newId(): string {
    this.#left--;
    this.#highest++;
    return callIdOf(this.#highest);
  }

  /** Marks a call as answered. */
  answered(callId: string): void {
    this.#outstanding.delete(callId);
  }

  /** Ids of the calls without a result, in issue order. */
  get outstanding(): string[] {
    return [...this.#outstanding];
  }

  get hasOutstanding(): boolean {
    return this.#outstanding.size > 0;
  }

  isOutstanding(callId: string): boolean {
    return this.#outstanding.has(callId);
  }

  /** Recorded calls that the program has not repeated. */
  get unused(): number {
    return this.#unusedCount;
  }

  /** Calls of this attempt, repeated ones included. */
  get made(): number {
    return this.#made;
  }
}

const keyOf = (name: string, canonical: string) => `${JSON.stringify(name)} ${canonical}`;
