/**
 * Keeps the answers of a program's earlier rounds for as long as the last one. They are renewed together, and not again until
 * a part of their life is over: rounds that follow one another quickly cost the same however many came before. Answers
 * are stored for longer by that part.
 */
import type { Once } from "../once/once.ts";
import type { Continuation } from "./token.ts";

/** Life of a stored answer, in that for which it must be kept. */
const SLACK = 1.125;
/** Programs whose renewals are remembered; one that is forgotten is renewed once more. */
const MAX_PROGRAMS = 10_000;

/** How long answers are stored that must be kept for so long. */
export function storedSecondsFor(keptSeconds: number): number {
  return Math.ceil(keptSeconds * SLACK);
}

/** Redis key of the answer to the results of one pause. */
export function answerKey(executionId: string, round: number): string {
  return `svc:ptc:${executionId}:answer:${round}`;
}

export class EarlierAnswers {
  readonly #once: Pick<Once, "keep">;
  readonly #spareMs: number;
  readonly #renewed = new Map<string, number>();

  constructor(once: Pick<Once, "keep">, keptSeconds: number) {
    this.#once = once;
    this.#spareMs = keptSeconds * (SLACK - 1) * 1000;
  }

  /** Renews, in the background, the answers before the given one; all that were stored since the last time are new enough. */
  renew({ executionId, round }: Pick<Continuation, "executionId" | "round">, nowMs: number): void {
    const last = this.#renewed.get(executionId);
    if (round === 1 || (last !== undefined && nowMs - last < this.#spareMs)) return;
    this.#renewed.delete(executionId);
    this.#renewed.set(executionId, nowMs);
    if (this.#renewed.size > MAX_PROGRAMS) {
      const [oldest] = this.#renewed.keys();
      this.#renewed.delete(oldest as string);
    }
    void this.#once.keep(Array.from({ length: round - 1 }, (_, at) => answerKey(executionId, at + 1)));
  }
}
