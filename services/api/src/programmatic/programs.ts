/**
 * The store of paused programs in Redis, shared by all replicas. Every change is one compare-and-swap from a state that was
 * read: two replicas never move the same program on twice. What is lost with the store is an expired execution.
 */
import { readFileSync } from "node:fs";
import { historyKey, type RecordedCall, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";
import type { Program, Progress } from "./program.ts";

const ADVANCE = readFileSync(new URL("./lua/advance.lua", import.meta.url), "utf8");

type WithCommands = Redis & { svcAdvance: (...args: (string | number)[]) => Promise<number> };

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
  set?: { at: number; call: RecordedCall }[];
  added?: RecordedCall[];
}

export class Programs {
  readonly #redis: WithCommands;

  constructor(redis: Redis) {
    redis.defineCommand("svcAdvance", { numberOfKeys: 3, lua: ADVANCE });
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

  /** The recorded calls at the given places. */
  async calls(id: string, places: readonly number[]): Promise<RecordedCall[]> {
    if (places.length === 0) return [];
    const pipeline = this.#redis.pipeline();
    for (const at of places) pipeline.lindex(historyKey(id), at);
    const replies = await storeCall(() => pipeline.exec());
    return (replies ?? []).map(([, text]) => {
      if (typeof text !== "string") throw new ServiceError("execution_expired");
      return JSON.parse(text) as RecordedCall;
    });
  }

  /** Moves on; undefined when somebody else was faster. */
  async advance(id: string, change: Change): Promise<Known | undefined> {
    const { from, to, lifeMs, program, set = [], added = [] } = change;
    const text = JSON.stringify(to);
    const done = await storeCall(() =>
      this.#redis.svcAdvance(
        progressKey(id),
        historyKey(id),
        programKey(id),
        from?.text ?? "",
        text,
        lifeMs,
        program === undefined ? "" : JSON.stringify(program),
        set.length,
        ...set.flatMap(({ at, call }) => [at, JSON.stringify(call)]),
        ...added.map((call) => JSON.stringify(call)),
      ),
    );
    return done === 1 ? { progress: to, text } : undefined;
  }

  /** Forgets the program and its calls; the progress stays and says how it ended. */
  async forget(id: string): Promise<void> {
    await this.#redis.del(historyKey(id), programKey(id)).catch(() => undefined);
  }
}
