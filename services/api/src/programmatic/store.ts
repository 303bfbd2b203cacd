/**
 * The store of paused programs in Redis, shared by all replicas. Each transition is one compare-and-swap from a record that
 * was read, so two replicas never move one program on twice. A program lost with the store is an expired execution. What is stored of
 * programs, with their results and answers, counts in the bytes of their principal: beyond the limit no program starts, and beyond
 * twice as many none goes on, so that those that have started find room to end.
 */
import { type CallAnswer, historyKey, newId, type RecordedCall, ServiceError } from "@svc/contracts";
import {
  type LuaCommand,
  luaCommand,
  type Redis,
  STORED,
  StoredBytes,
  storeCall,
  storedKeys,
} from "@svc/service-kit";
import { tooMuchStored } from "../limits/window.ts";
import type { OwnEntry } from "../once/once.ts";
import type { Program, ProgramRecord } from "./state.ts";

const TRANSITION = new URL("./lua/transition.lua", import.meta.url);
/** Of the keys and fields of a program, beside what they hold. */
const KEYS_BYTES = 4096;
/** Of a call or its outcome, beside its text. */
const PART_BYTES = 128;

type Arguments = (string | number)[];

const recordKey = (id: string) => `svc:ptc:${id}`;
const programKey = (id: string) => `svc:ptc:${id}:program`;

/** A record as it was read: its text is what a change is compared with. */
export interface Snapshot {
  record: ProgramRecord;
  text: string;
}

/** A program and its record. */
export interface Stored {
  program: Program;
  snapshot: Snapshot;
}

export interface Change {
  /** The record that must still be there; undefined: none. */
  from: Snapshot | undefined;
  to: ProgramRecord;
  lifeMs: number;
  /** With the first pause. */
  program?: Program;
  /** Outcomes of recorded calls, by their index. */
  outcomes?: { at: number; outcome: CallAnswer["outcome"] }[];
  added?: RecordedCall[];
  /** The idempotency entry of the request: keeps the answer. */
  entry?: OwnEntry | undefined;
  answer?: unknown;
}

export class ProgramStore {
  readonly #redis: Redis;
  readonly #stored: StoredBytes;
  readonly #transition: LuaCommand<number>;

  constructor(redis: Redis, stored = new StoredBytes(redis, 0)) {
    this.#redis = redis;
    this.#stored = stored;
    this.#transition = luaCommand(redis, "svcTransition", [STORED, TRANSITION], 6);
  }

  /** Throws when the principal of this namespace has too much stored for another program. */
  async refuseWhenFull(owner: string): Promise<void> {
    if (await this.#stored.isFull(owner)) throw tooMuchStored(this.#stored.most);
  }

  /** A program that is over has a record alone. */
  async read(id: string): Promise<Partial<Stored>> {
    const [text, program] = await storeCall(() => this.#redis.mget(recordKey(id), programKey(id)));
    return {
      ...(text && { snapshot: { record: JSON.parse(text) as ProgramRecord, text } }),
      ...(program && { program: JSON.parse(program) as Program }),
    };
  }

  /** Which of these programs have a record and are not over. */
  async areNotOver(ids: readonly string[]): Promise<boolean[]> {
    const texts = await storeCall(() => this.#redis.mget(ids.map(recordKey)));
    return texts.map((text) => text !== null && !isOver(JSON.parse(text) as ProgramRecord));
  }

  /**
   * Makes a transition; undefined when the record is another than the one that it starts from. Of a program that is over only the record
   * stays, and says how it ended.
   */
  async transition(id: string, change: Change): Promise<Snapshot | undefined> {
    const kept = change.answer === undefined ? undefined : change.entry;
    const { record, text, args } = argumentsOf(id, change, kept, 2 * this.#stored.most);
    const done = await storeCall(() => this.#transition(...args));
    if (done === TOO_MUCH) throw tooMuchStored(2 * this.#stored.most);
    if (done < 0) throw new ServiceError("execution_expired");
    if (done !== 1) return undefined;
    kept?.keep();
    return { record, text };
  }

  /**
   * Makes a transition that only a cancellation may forestall. Where another attempt did, or the store came back with an earlier record, a
   * repeat of the request finds what there is.
   */
  async advance(id: string, change: Change): Promise<Snapshot> {
    const done = await this.transition(id, change);
    if (done !== undefined) return done;
    const { snapshot } = await this.read(id);
    if (snapshot?.record.status === "cancelled") throw new ServiceError("execution_cancelled");
    throw new ServiceError("store_unavailable", MOVED);
  }
}

const TOO_MUCH = -2;
const MOVED = "The program is not where this request left it; it is safe to repeat the request.";

const isOver = ({ status }: ProgramRecord) => status !== "paused" && status !== "resuming";

/** `kept`: the entry that keeps the answer. The text of the record is of this change alone. */
function argumentsOf(
  id: string,
  { from, to, lifeMs, program, outcomes = [], added = [], answer }: Change,
  kept: OwnEntry | undefined,
  most: number,
): Snapshot & { args: Arguments } {
  const entry = kept?.with(answer) ?? "";
  const record = kept === undefined ? to : withAnswer(to, entry);
  const text = JSON.stringify({ ...record, change: newId() });
  // Its end, and the answer to what was let in, are always stored.
  const isBounded = program !== undefined || outcomes.length > 0;
  const args = [
    recordKey(id),
    historyKey(id),
    programKey(id),
    kept?.store ?? recordKey(id),
    ...storedKeys(record.owner ?? ""),
    from?.text ?? "",
    text,
    lifeMs,
    isOver(record) ? "-" : program === undefined ? "" : JSON.stringify(program),
    entry,
    kept?.lifeMs ?? 0,
    id,
    record.owner === undefined ? "" : totalBytes(record, text),
    isBounded ? most : 0,
    outcomes.length,
    ...outcomes.flatMap(({ at, outcome }) => [at, JSON.stringify(outcome)]),
    ...added.map((call) => JSON.stringify(call)),
  ];
  return { record, text, args };
}

const withAnswer = (record: ProgramRecord, entry: string): ProgramRecord => ({
  ...record,
  answer_bytes: (record.answer_bytes ?? 0) + Buffer.byteLength(entry),
});

/** Of a program that is over only its answers are large. `text`: of the record. */
function totalBytes(record: ProgramRecord, text: string): number {
  const { state_bytes, history_bytes, stored_bytes = state_bytes + history_bytes, answer_bytes = 0 } = record;
  return isOver(record) ? answer_bytes : KEYS_BYTES + Buffer.byteLength(text) + stored_bytes + answer_bytes;
}

/** Bytes of what is stored as JSON. */
export const bytesOf = (value: object) => Buffer.byteLength(JSON.stringify(value));

/** Of a call or an outcome: it lies here and, but for small results, with the tool call server. */
export const storedBytesOf = (part: RecordedCall | CallAnswer["outcome"]) => 2 * bytesOf(part) + PART_BYTES;
