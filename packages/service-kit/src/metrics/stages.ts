/** What each stage of an execution took: `svc_stage_seconds` of one component, and the stages of its spans. */
import type { Registry } from "prom-client";
import type { Span } from "../tracing/tracing.ts";
import { histogram } from "./made.ts";

export type Stage = "authorize" | "queue" | "grant" | "setup" | "stage_in" | "run" | "collect" | "store";

export interface StageMetrics {
  observe: (stage: Stage, seconds: number) => void;
}

export function stageMetrics(registry: Registry): StageMetrics {
  const stages = histogram(registry, "svc_stage_seconds");
  return { observe: (stage, seconds) => stages.observe({ stage }, seconds) };
}

/** As traces call them. The wait for a slot is what comes before the first stage of a span. */
const IN_TRACES: Partial<Record<Stage, string>> = {
  setup: "jail.setup",
  stage_in: "stage",
  run: "jail.run",
  collect: "collect",
  store: "store",
};

/**
 * The stages of one execution, of which it is in one at a time, or in none. A stage that is entered again goes on; each that
 * was entered is observed once, at the end. Where there is a span, each time in a stage is one below it.
 */
export class StageClock {
  readonly #metrics: StageMetrics;
  readonly #ms = new Map<Stage, number>();
  #stage: Stage | undefined;
  #sinceMs = 0;
  /** Of the request that the execution is in. */
  span: Span | undefined;

  constructor(metrics: StageMetrics) {
    this.#metrics = metrics;
  }

  /** Undefined: none, as while a program is paused. `inTrace`: what a part of a stage is called there. */
  enter(stage: Stage | undefined, inTrace = stage && IN_TRACES[stage]): void {
    if (inTrace !== undefined) this.span?.stage(inTrace);
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
