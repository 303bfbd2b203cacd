/**
 * The store of paused programs in Redis, shared by all replicas. Every change is one compare-and-swap from a state that was
 * read: two replicas never move the same program on twice. What is lost with the store is an expired execution.
 */
import { readFileSync } from "node:fs";
import { historyKey, type RecordedCall, ServiceError } from "@svc/contracts";
import { type Redis, storeCall } from "@svc/service-kit";
import type { Program, Progress } from "./program.ts";
import type { Outcome } from "./results.ts";

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
  /** Outcomes of recorded calls, by their places. */
  answers?: { at: number; outcome: Outcome }[];
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

  /** Moves on; undefined when somebody else was faster. */
  async advance(id: string, change: Change): Promise<Known | undefined> {
    const { from, to, lifeMs, program, answers = [], added = [] } = change;
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
        answers.length,
        ...answers.flatMap(({ at, outcome }) => [at, JSON.stringify(outcome)]),
        ...added.map((call) => JSON.stringify(call)),
      ),
    );
    if (done < 0) throw new ServiceError("execution_expired");
    return done === 1 ? { progress: to, text } : undefined;
  }

  /** Forgets the program and its calls, in the background; the progress stays and says how it ended. */
  forget(id: string): void {
    this.#redis.del(historyKey(id), programKey(id)).catch(() => undefined);
  }
}
