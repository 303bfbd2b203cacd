/**
 * The store of paused programs in Redis, shared by all replicas. Every change is one compare-and-swap from a state that was
 * read: two replicas never move the same program on twice. What is lost with the store is an expired execution.
 */
import { readFileSync } from "node:fs";
import { historyKey, type RecordedCall, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import { type KnownProgram, KnownPrograms } from "./known-programs.ts";
import type { Program, Progress } from "./program.ts";
import type { Outcome } from "./results.ts";

const ADVANCE = readFileSync(new URL("./lua/advance.lua", import.meta.url), "utf8");

type Arguments = (string | number)[];
type WithCommands = Redis & { svcAdvance: (...args: Arguments) => Promise<number> };

const progressKey = (id: string) => `svc:ptc:${id}`;
const programKey = (id: string) => `svc:ptc:${id}:program`;

/** A state as it was read: its text is what a change compares with. */
export interface Known {
  progress: Progress;
  text: string;
}

export interface Change {
  /** What must still be there; undefined: nothing. */
  from: Known | undefined;
  to: Progress;
  lifeMs: number;
  /** With the first pause. */
  program?: Program;
  /** Outcomes of recorded calls, by their places. */
  answers?: { at: number; outcome: Outcome }[];
  added?: RecordedCall[];
  /** Keeps the answer, if it is still there. */
  entry?: OwnEntry | undefined;
  answer?: unknown;
}

export class Programs {
  readonly #redis: WithCommands;
  readonly #copies = new KnownPrograms();

  constructor(redis: Redis) {
    redis.defineCommand("svcAdvance", { numberOfKeys: 4, lua: ADVANCE });
    this.#redis = redis as WithCommands;
  }

  async progress(id: string): Promise<Known | undefined> {
    const text = await storeCall(() => this.#redis.get(progressKey(id)));
    return text === null ? undefined : { progress: JSON.parse(text) as Progress, text };
  }

  async program(id: string): Promise<Program> {
    const text = await storeCall(() => this.#redis.get(programKey(id)));
    if (text === null) throw new ServiceError("execution_expired");
    return JSON.parse(text) as Program;
  }

  /** A paused program as it was stored here. */
  keepCopy(id: string, program: Program, known: Known): void {
    this.#copies.remember(id, { program, known });
  }

  /** Gives a copy away: what is made of it is something else. */
  takeCopy(id: string): KnownProgram | undefined {
    return this.#copies.take(id);
  }

  /** Moves on; undefined when somebody else was faster. */
  async advance(id: string, change: Change): Promise<Known | undefined> {
    const { to, entry, answer } = change;
    const keeps = entry !== undefined && answer !== undefined;
    const { text, args } = advanceOf(
      id,
      change,
      keeps ? { entry, text: entry.with(answer), lifeMs: entry.lifeMs } : undefined,
    );
    const done = await storeCall(() => this.#redis.svcAdvance(...args));
    if (done < 0) throw new ServiceError("execution_expired");
    if (done !== 1) return undefined;
    if (keeps) entry.keep();
    return { progress: to, text };
  }

  /**
   * Takes the entry of a request and moves on, if it has it. `isTaken`: it has; without `known` the program is not as it was
   * presumed to be.
   */
  async takeAndAdvance(
    id: string,
    change: Change,
    entry: OwnEntry,
  ): Promise<{ isTaken: boolean; known?: Known }> {
    const { text, args } = advanceOf(id, change, { entry, text: "", lifeMs: entry.lockMs });
    const done = await storeCall(() => this.#redis.svcAdvance(...args));
    return { isTaken: done !== -2, ...(done === 1 && { known: { progress: change.to, text } }) };
  }

  /** Forgets the program and its calls, in the background; the progress stays and says how it ended. */
  forget(id: string): void {
    this.#redis.del(historyKey(id), programKey(id)).catch(() => undefined);
  }
}

interface EntryChange {
  entry: OwnEntry;
  /** Of the entry with its answer; empty: it is to be taken. */
  text: string;
  lifeMs: number;
}

function advanceOf(id: string, change: Change, entry?: EntryChange): { text: string; args: Arguments } {
  const { from, to, lifeMs, program, answers = [], added = [] } = change;
  const text = JSON.stringify(to);
  const args = [
    progressKey(id),
    historyKey(id),
    programKey(id),
    entry?.entry.store ?? progressKey(id),
    from?.text ?? "",
    text,
    lifeMs,
    program === undefined ? "" : JSON.stringify(program),
    entry?.entry.lock ?? "",
    entry?.text ?? "",
    entry?.lifeMs ?? 0,
    answers.length,
    ...answers.flatMap(({ at, outcome }) => [at, JSON.stringify(outcome)]),
    ...added.map((call) => JSON.stringify(call)),
  ];
  return { text, args };
}
