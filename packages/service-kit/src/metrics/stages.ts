/** `svc_stage_seconds` of one component: what each stage of an execution took. */
import type { Registry } from "prom-client";
import { histogram } from "./made.ts";

export type Stage = "authorize" | "queue" | "grant" | "setup" | "stage_in" | "run" | "collect" | "store";

export interface StageMetrics {
  observe: (stage: Stage, seconds: number) => void;
}

export function stageMetrics(registry: Registry): StageMetrics {
  const stages = histogram(registry, "svc_stage_seconds");
  return { observe: (stage, seconds) => stages.observe({ stage }, seconds) };
}

/**
 * The stages of one execution, of which it is in one at a time, or in none. A stage that is entered again goes on; each that
 * was entered is observed once, at the end.
 */
export class StageClock {
  readonly #metrics: StageMetrics;
  readonly #ms = new Map<Stage, number>();
  #stage: Stage | undefined;
  #sinceMs = 0;

  constructor(metrics: StageMetrics) {
    this.#metrics = metrics;
  }

  /** Undefined: none, as while a program is paused. */
  enter(stage: Stage | undefined): void {
    const nowMs = performance.now();
    if (this.#stage !== undefined)
      this.#ms.set(this.#stage, (this.#ms.get(this.#stage) ?? 0) + nowMs - this.#sinceMs);
    this.#stage = stage;
    this.#sinceMs = nowMs;
  }

  end(): void {
    this.enter(undefined);
    for (const [stage, ms] of this.#ms) this.#metrics.observe(stage, ms / 1000);
    this.#ms.clear();
  }
}
