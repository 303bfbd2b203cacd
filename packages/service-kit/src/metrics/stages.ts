/** The duration of each stage of an execution: for `svc_stage_seconds` of one component, and as stages of its spans. */
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

/** Names of the stages in traces. The wait for a slot has no name: it is the time before the first stage of a span. */
const IN_TRACES: Partial<Record<Stage, string>> = {
  setup: "jail.setup",
  stage_in: "stage",
  run: "jail.run",
  collect: "collect",
  store: "store",
};

/**
 * The stages of one execution, which is in at most one stage at a time. A stage that is entered again accumulates its time; each
 * entered stage is observed once, at the end. With a span, each entry into a stage that traces name adds a child span.
 */
export class StageClock {
  readonly #metrics: StageMetrics;
  readonly #ms = new Map<Stage, number>();
  #stage: Stage | undefined;
  #sinceMs = 0;
  /** The span of the current request of this execution. */
  span: Span | undefined;

  constructor(metrics: StageMetrics) {
    this.#metrics = metrics;
  }

  /** `stage`: undefined for no stage, such as while a program is paused. `inTrace`: the name in traces, for a part of a stage. */
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
