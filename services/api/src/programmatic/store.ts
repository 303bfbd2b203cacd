/**
 * The store of paused programs in Redis, shared by all replicas. Each transition is one compare-and-swap from a record that
 * was read, so two replicas never move one program on twice. A program lost with the store is an expired execution. Also
 * caches the records that this process wrote: the cache is advisory, and a stale copy fails the compare-and-swap.
 */
import { readFileSync } from "node:fs";
import { type CallAnswer, historyKey, type RecordedCall, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import type { Program, ProgramRecord } from "./state.ts";

const TRANSITION = readFileSync(new URL("./lua/transition.lua", import.meta.url), "utf8");
const MAX_CACHED = 512;
/** Larger programs are read from Redis each time. */
const MAX_CACHED_BYTES = 32 * 1024;

type Arguments = (string | number)[];
type WithCommands = Redis & { svcTransition: (...args: Arguments) => Promise<number> };

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
  /** The idempotency entry of the request: keeps the answer, if the request still owns it. */
  entry?: OwnEntry | undefined;
  answer?: unknown;
}

export class ProgramStore {
  readonly #redis: WithCommands;
  readonly #cache = new Map<string, Stored>();

  constructor(redis: Redis) {
    redis.defineCommand("svcTransition", { numberOfKeys: 4, lua: TRANSITION });
    this.#redis = redis as WithCommands;
  }

  async read(id: string): Promise<Snapshot | undefined> {
    const text = await storeCall(() => this.#redis.get(recordKey(id)));
    return text === null ? undefined : { record: JSON.parse(text) as ProgramRecord, text };
  }

  async program(id: string): Promise<Program> {
    const text = await storeCall(() => this.#redis.get(programKey(id)));
    if (text === null) throw new ServiceError("execution_expired");
    return JSON.parse(text) as Program;
  }

  /** Caches a program as it was just stored. At the bound the oldest copy goes. */
  cache(id: string, stored: Stored): void {
    this.#cache.delete(id);
    if (stored.snapshot.record.state_bytes > MAX_CACHED_BYTES) return;
    const [oldest] = this.#cache.keys();
    if (this.#cache.size >= MAX_CACHED && oldest !== undefined) this.#cache.delete(oldest);
    this.#cache.set(id, stored);
  }

  /** Removes a copy from the cache and returns it: its next transition makes it stale. */
  takeCached(id: string): Stored | undefined {
    const found = this.#cache.get(id);
    this.#cache.delete(id);
    return found;
  }

  /** Makes a transition; undefined when the record is not the one that it starts from. */
  async transition(id: string, change: Change): Promise<Snapshot | undefined> {
    const { to, entry, answer } = change;
    const keeps = entry !== undefined && answer !== undefined;
    const { text, args } = argumentsOf(
      id,
      change,
      keeps ? { entry, text: entry.with(answer), lifeMs: entry.lifeMs } : undefined,
    );
    const done = await storeCall(() => this.#redis.svcTransition(...args));
    if (done < 0) throw new ServiceError("execution_expired");
    if (done !== 1) return undefined;
    if (keeps) entry.keep();
    return { record: to, text };
  }

  /**
   * Claims the idempotency entry of a request and makes a transition in the same step. Nothing happens when another request
   * owns the entry. `snapshot` is absent when the record was not the expected one.
   */
  async claimAndTransition(
    id: string,
    change: Change,
    entry: OwnEntry,
  ): Promise<{ isClaimed: boolean; snapshot?: Snapshot }> {
    const { text, args } = argumentsOf(id, change, { entry, text: "", lifeMs: entry.lockMs });
    const done = await storeCall(() => this.#redis.svcTransition(...args));
    return { isClaimed: done !== -2, ...(done === 1 && { snapshot: { record: change.to, text } }) };
  }

  /** Removes the program and its calls, in the background; the record stays and says how it ended. */
  forget(id: string): void {
    this.#redis.del(historyKey(id), programKey(id)).catch(() => undefined);
  }
}

interface EntryChange {
  entry: OwnEntry;
  /** Of the entry with its answer; empty: the entry is claimed. */
  text: string;
  lifeMs: number;
}

function argumentsOf(id: string, change: Change, entry?: EntryChange): { text: string; args: Arguments } {
  const { from, to, lifeMs, program, outcomes = [], added = [] } = change;
  const text = JSON.stringify(to);
  const args = [
    recordKey(id),
    historyKey(id),
    programKey(id),
    entry?.entry.store ?? recordKey(id),
    from?.text ?? "",
    text,
    lifeMs,
    program === undefined ? "" : JSON.stringify(program),
    entry?.entry.lock ?? "",
    entry?.text ?? "",
    entry?.lifeMs ?? 0,
    outcomes.length,
    ...outcomes.flatMap(({ at, outcome }) => [at, JSON.stringify(outcome)]),
    ...added.map((call) => JSON.stringify(call)),
  ];
  return { text, args };
}
