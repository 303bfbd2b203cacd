/**
 * How long things of a program are kept: its record from the last pause on, everything while a round is made, and the
 * answers of all rounds for as long as the last one. Redis removes what expired. Earlier answers are renewed together, and
 * only after a part of their life is over: rounds in quick succession cost the same however many came before. Answers are
 * stored for longer by that part.
 */
import { roundLifeMs } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { Once } from "../once/once.ts";
import type { Continuation } from "./token.ts";

/** Life of a stored answer, as a multiple of the time that it must be kept. */
const SLACK = 1.125;
/** Programs whose renewals are remembered; a forgotten one is renewed once more. */
const MAX_PROGRAMS = 10_000;

/** Life of a record that no request works on, ms. */
export function recordLifeMs(config: Config): number {
  return config.TOOL_CALL_SESSION_EXPIRY * 1000;
}

/** Attempts of one round that run the program from the top: a broken one is attempted once more. */
export const MAX_FROM_TOP = 2;
/** Attempts to make one round: one goes on with the paused program, the others run it from the top. */
const MAX_ATTEMPTS = 1 + MAX_FROM_TOP;

/** Longer than a round, with all its attempts, and the pause after it can take together, ms. */
export function roundAndPauseMs(config: Config): number {
  return MAX_ATTEMPTS * roundLifeMs(config);
}

/** How long an answer is stored that must be kept for `keptSeconds`. */
export function storedSecondsFor(keptSeconds: number): number {
  return Math.ceil(keptSeconds * SLACK);
}

/** Redis key of the answer to the results of one pause. */
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

  /** Renews the answers before the given one in the background. Those stored since the last renewal are new enough. */
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
