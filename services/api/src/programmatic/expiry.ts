/**
 * How long the data of a program is kept: its record from the last pause on, everything while a round runs, and the answers of all rounds
 * for as long as the last one. Redis removes what has expired. Earlier answers are renewed together, and only after a part of their life
 * has passed, so that the cost of quick rounds does not grow with their number. In return, answers are stored longer by that part.
 */
import { roundLifeMs } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { Once } from "../once/once.ts";
import type { Continuation } from "./token.ts";

/** Life of a stored answer, as a multiple of the time that it must be kept. */
const SLACK = 1.125;
/** How many programs' last renewals are remembered. The answers of an evicted program are renewed once more. */
const MAX_PROGRAMS = 10_000;

/** Life of a record while no request works on it, ms. */
export function recordLifeMs(config: Config): number {
  return config.TOOL_CALL_SESSION_EXPIRY * 1000;
}

/** Attempts of one round that run the program from the top: a failed one is retried once. */
export const MAX_FROM_TOP = 2;
/** Attempts to make one round: one continues the paused program, the others run it from the top. */
const MAX_ATTEMPTS = 1 + MAX_FROM_TOP;

/** An upper bound for a round with all its attempts and the pause after it, ms. */
export function roundAndPauseMs(config: Config): number {
  return MAX_ATTEMPTS * roundLifeMs(config);
}

/** How long to store an answer that must be kept for at least `keptSeconds`. */
export function storedSecondsFor(keptSeconds: number): number {
  return Math.ceil(keptSeconds * SLACK);
}

/** Redis key of the answer that a resume gets for the results of one pause. */
export function roundAnswerKey(executionId: string, round: number): string {
  return `svc:ptc:${executionId}:answer:${round}`;
}

export class AnswerRenewal {
  readonly #once: Pick<Once, "keep">;
  readonly #spareMs: number;
  readonly #renewedAt = new Map<string, number>();

  constructor(once: Pick<Once, "keep">, keptSeconds: number) {
    this.#once = once;
    this.#spareMs = keptSeconds * (SLACK - 1) * 1000;
  }

  /** Renews the answers before the given one in the background. Answers stored since the last renewal are recent enough without it. */
  renew({ executionId, round }: Pick<Continuation, "executionId" | "round">, nowMs: number): void {
    const last = this.#renewedAt.get(executionId);
    if (round === 1 || (last !== undefined && nowMs - last < this.#spareMs)) return;
    this.#renewedAt.delete(executionId);
    this.#renewedAt.set(executionId, nowMs);
    if (this.#renewedAt.size > MAX_PROGRAMS) {
      const [oldest] = this.#renewedAt.keys();
      this.#renewedAt.delete(oldest as string);
    }
    void this.#once.keep(Array.from({ length: round - 1 }, (_, at) => roundAnswerKey(executionId, at + 1)));
  }
}
