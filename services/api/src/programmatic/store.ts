/**
 * The store of paused programs in Redis, shared by all replicas. Each transition is one compare-and-swap from a record that
 * was read, so two replicas never move one program on twice. A program lost with the store is an expired execution.
 */
import { readFileSync } from "node:fs";
import { type CallAnswer, historyKey, newId, type RecordedCall, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import type { Program, ProgramRecord } from "./state.ts";

const TRANSITION = readFileSync(new URL("./lua/transition.lua", import.meta.url), "utf8");

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

  constructor(redis: Redis) {
    redis.defineCommand("svcTransition", { numberOfKeys: 4, lua: TRANSITION });
    this.#redis = redis as WithCommands;
  }

  /** A program that is over has a record alone. */
  async read(id: string): Promise<Partial<Stored>> {
    const [text, program] = await storeCall(() => this.#redis.mget(recordKey(id), programKey(id)));
    return {
      ...(text && { snapshot: { record: JSON.parse(text) as ProgramRecord, text } }),
      ...(program && { program: JSON.parse(program) as Program }),
    };
  }

  /**
   * Makes a transition; undefined when the record is another than the one that it starts from. Of a program that is over only the record
   * stays, and says how it ended.
   */
  async transition(id: string, change: Change): Promise<Snapshot | undefined> {
    const { to, entry, answer } = change;
    const kept = answer === undefined ? undefined : entry;
    const { text, args } = argumentsOf(id, change, kept);
    const done = await storeCall(() => this.#redis.svcTransition(...args));
    if (done < 0) throw new ServiceError("execution_expired");
    if (done !== 1) return undefined;
    kept?.keep();
    return { record: to, text };
  }
}

const isOver = ({ status }: ProgramRecord) => status !== "paused" && status !== "resuming";

/** `kept`: the entry that keeps the answer. The text of the record is of this change alone. */
function argumentsOf(id: string, change: Change, kept?: OwnEntry): { text: string; args: Arguments } {
  const { from, to, lifeMs, program, outcomes = [], added = [], answer } = change;
  const text = JSON.stringify({ ...to, change: newId() });
  const args = [
    recordKey(id),
    historyKey(id),
    programKey(id),
    kept?.store ?? recordKey(id),
    from?.text ?? "",
    text,
    lifeMs,
    isOver(to) ? "-" : program === undefined ? "" : JSON.stringify(program),
    kept?.lock ?? "",
    kept?.with(answer) ?? "",
    kept?.lifeMs ?? 0,
    outcomes.length,
    ...outcomes.flatMap(({ at, outcome }) => [at, JSON.stringify(outcome)]),
    ...added.map((call) => JSON.stringify(call)),
  ];
  return { text, args };
}
