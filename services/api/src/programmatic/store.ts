/**
 * The store of paused programs in Redis, shared by all replicas. Each transition is one compare-and-swap on a record that was read, so two
 * replicas never make the same transition twice. A program whose data Redis lost is an expired execution. Programs, their results and
 * their answers count towards the stored bytes of their principal. Beyond the limit no program starts, and beyond twice the limit none
 * goes on, so that programs that have started have room to end.
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
/** Overhead of the Redis keys and fields of a program, without their values. */
const KEYS_BYTES = 4096;
/** Overhead of a call or its outcome, without its text. */
const PART_BYTES = 128;

type Arguments = (string | number)[];

const recordKey = (id: string) => `svc:ptc:${id}`;
const programKey = (id: string) => `svc:ptc:${id}:program`;

/** A record as it was read. Its text is the expected value of the compare-and-swap. */
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
  /** The record that must still be there; undefined when there must be none. */
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

  /** Throws when the principal of this namespace has no room for another program. */
  async refuseWhenFull(owner: string): Promise<void> {
    if (await this.#stored.isFull(owner)) throw tooMuchStored(this.#stored.most);
  }

  /** Reads a program and its record. A program that is over has only a record. */
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
   * Makes a transition; undefined when the record differs from `change.from`. Of a program that is over only the record stays, and says
   * how it ended.
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
   * Makes a transition that only a cancellation is expected to prevent. If another attempt was faster, or Redis came back with an earlier
   * record, it throws store_unavailable: a repeat of the request works with the current record.
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

/** `kept`: the entry that keeps the answer. A random `change` id makes the text of the record unique to this change. */
function argumentsOf(
  id: string,
  { from, to, lifeMs, program, outcomes = [], added = [], answer }: Change,
  kept: OwnEntry | undefined,
  most: number,
): Snapshot & { args: Arguments } {
  const entry = kept?.with(answer) ?? "";
  const record = kept === undefined ? to : withAnswer(to, entry);
  const text = JSON.stringify({ ...record, change: newId() });
  // The limit applies to the first pause and to results. The end of a program, and the answer to accepted results, are always stored.
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

/** Stored bytes of a program. When it is over, only its answers count, as the rest is small. `text`: the text of the record. */
function totalBytes(record: ProgramRecord, text: string): number {
  const { state_bytes, history_bytes, stored_bytes = state_bytes + history_bytes, answer_bytes = 0 } = record;
  return isOver(record) ? answer_bytes : KEYS_BYTES + Buffer.byteLength(text) + stored_bytes + answer_bytes;
}

/** Bytes of a value as JSON. */
export const bytesOf = (value: object) => Buffer.byteLength(JSON.stringify(value));

/** Stored bytes of a call or an outcome, counted twice: the tool call server has a copy, too, except of small results. */
export const storedBytesOf = (part: RecordedCall | CallAnswer["outcome"]) => 2 * bytesOf(part) + PART_BYTES;
