/** Metrics of executions on the runner. */
import { EXECUTION_OUTCOMES, type ExecutionOutcome } from "@svc/contracts";
import {
  counter,
  gauge,
  histogram,
  type Registry,
  type Span,
  type Stage,
  StageClock,
  stageMetrics,
} from "@svc/service-kit";

/** A jail that is not ready after this time counts as a watchdog fire. */
const SETUP_WATCHDOG_MS = 5000;

/** Why a paused program was evicted: it waited too long, was one too many, took scarce memory, or can get no answer. */
export type EvictionCause = "timeout" | "max_paused" | "max_paused_per_principal" | "memory" | "unanswerable";

/** The language of a request that is not authentic is not trusted. */
export const UNKNOWN_LANGUAGE = "unknown";
export const MANIFEST_ERROR = "manifest_error";

/** The numbers of one warm pool. */
export interface WarmCount {
  zygote: string;
  waiting: number;
  wanted: number;
}

/** What the runner holds now. */
export interface HeldExecutions {
  slots: { total: number; busy: number };
  paused: number;
}

/**
 * An execution is in one stage at a time, at first in `queue`, where it waits for a slot.
 * Each stage is measured, and is a span below that of its request.
 */
export interface CountedExecution {
  /** `inTrace`: the name of this part of the stage in the trace. */
  enter: (stage: Stage, inTrace?: string) => void;
  /** Enters the stage `run`: the program may run for this long, in ms. */
  runs: (wallMs: number) => void;
  paused: () => void;
  /** The execution waits for a slot again, in a further request. */
  resumed: (span: Span | undefined) => void;
  /**
   * The execution is over without an outcome of its own: it was refused before it began, is run again from the top, or nobody wants it any more.
   */
  abandoned: () => void;
  ended: (outcome: ExecutionOutcome) => void;
}

export interface RunnerMetrics {
  /** Counts an execution. Its duration is the time in which it was not paused. */
  began: (language: string, span?: Span) => CountedExecution;
  /** Number of programs of each language that run now, within their time limit. */
  running: () => Record<string, number>;
  /** Sets the source of the numbers of slots and paused programs. */
  watchExecutions: (read: () => HeldExecutions) => void;
  /** Counts the start of a program: warm, in a process that existed before, or in a new one. */
  started: (warm: boolean) => void;
  /** Sets the source of the numbers of warm jails. */
  watchWarm: (read: () => readonly WarmCount[]) => void;
  /** Counts an opened large input: from a copy on the runner, or not. */
  askedForCopy: (found: boolean) => void;
  /** Sets the source of the size of all copies. */
  watchCopies: (read: () => number) => void;
  evicted: (cause: EvictionCause) => void;
  /** Watches how long a jail takes to be ready. */
  watchSetup: <T>(setup: () => Promise<T>) => Promise<T>;
}

/** `languages`: the installed ones, by their runner names. */
export function runnerMetrics(registry: Registry, languages: readonly string[]): RunnerMetrics {
  return {
    ...executionMetrics(registry, languages),
    ...heldMetrics(registry),
    ...startMetrics(registry),
    ...inputCopyMetrics(registry),
    ...setupMetrics(registry),
  };
}

function executionMetrics(
  registry: Registry,
  languages: readonly string[],
): Pick<RunnerMetrics, "began" | "running" | "evicted"> {
  const total = counter(registry, "svc_sandbox_executions_total");
  // An increase from nothing to 1 would not be seen.
  for (const language of languages)
    for (const outcome of EXECUTION_OUTCOMES)
      if (outcome !== MANIFEST_ERROR) total.inc({ language, outcome }, 0);
  total.inc({ language: UNKNOWN_LANGUAGE, outcome: MANIFEST_ERROR }, 0);
  const duration = histogram(registry, "svc_sandbox_execution_duration_seconds");
  const evictions = counter(registry, "svc_ptc_live_evictions_total");
  const stages = stageMetrics(registry);
  const running = new RunningPrograms();
  return {
    began: (language, span) =>
      countExecution(new StageClock(stages), span, running.counter(language), (outcome, seconds) => {
        total.inc({ language, outcome });
        duration.observe({ language, outcome }, seconds);
      }),
    running: () => running.counts(),
    evicted: (cause) => evictions.inc({ cause }),
  };
}

/** Programs in their stage `run`. A program beyond its time limit does not count: whatever ends programs then does not work. */
class RunningPrograms {
  readonly #running = new Set<{ language: string; untilMs: number }>();

  /** The returned function is told how long the program may run from now on; undefined: it does not run. */
  counter(language: string): (wallMs: number | undefined) => void {
    const program = { language, untilMs: 0 };
    return (wallMs) => {
      this.#running.delete(program);
      if (wallMs === undefined) return;
      program.untilMs = performance.now() + wallMs;
      this.#running.add(program);
    };
  }

  counts(): Record<string, number> {
    const nowMs = performance.now();
    const counts: Record<string, number> = {};
    for (const { language, untilMs } of this.#running)
      if (nowMs < untilMs) counts[language] = (counts[language] ?? 0) + 1;
    return counts;
  }
}

function countExecution(
  stages: StageClock,
  span: Span | undefined,
  mayRun: (wallMs: number | undefined) => void,
  record: (outcome: ExecutionOutcome, seconds: number) => void,
): CountedExecution {
  let sinceMs: number | undefined = performance.now();
  let ranMs = 0;
  const stop = () => {
    mayRun(undefined);
    if (sinceMs !== undefined) ranMs += performance.now() - sinceMs;
    sinceMs = undefined;
    stages.enter(undefined);
    stages.span = undefined;
  };
  stages.span = span;
  stages.enter("queue");
  return {
    enter: (stage, inTrace) => {
      mayRun(undefined);
      stages.enter(stage, inTrace);
    },
    runs: (wallMs) => {
      stages.enter("run");
      mayRun(wallMs);
    },
    paused: stop,
    resumed: (next) => {
      stages.span = next;
      sinceMs = performance.now();
      stages.enter("queue");
    },
    abandoned: () => {
      mayRun(undefined);
      stages.end();
    },
    ended: (outcome) => {
      stop();
      stages.end();
      record(outcome, ranMs / 1000);
    },
  };
}

function heldMetrics(registry: Registry): Pick<RunnerMetrics, "watchExecutions"> {
  let held = (): HeldExecutions => ({ slots: { total: 0, busy: 0 }, paused: 0 });
  gauge(registry, "svc_sandbox_active_executions", (active) => {
    const { slots, paused } = held();
    active.set({ state: "running" }, slots.busy);
    active.set({ state: "paused" }, paused);
  });
  gauge(registry, "svc_sandbox_slots", (slots) => {
    const { total, busy } = held().slots;
    slots.set({ state: "busy" }, busy);
    slots.set({ state: "free" }, total - busy);
  });
  return {
    watchExecutions: (read) => {
      held = read;
    },
  };
}

function startMetrics(registry: Registry): Pick<RunnerMetrics, "started" | "watchWarm"> {
  const starts = counter(registry, "svc_sandbox_starts_total");
  let readWarm = (): readonly WarmCount[] => [];
  gauge(registry, "svc_sandbox_warm_jails", (jails) => {
    for (const { zygote, waiting, wanted } of readWarm()) {
      jails.set({ zygote, number: "waiting" }, waiting);
      jails.set({ zygote, number: "wanted" }, wanted);
    }
  });
  return {
    started: (warm) => starts.inc({ start: warm ? "warm" : "cold" }),
    watchWarm: (read) => {
      readWarm = read;
    },
  };
}

function inputCopyMetrics(registry: Registry): Pick<RunnerMetrics, "askedForCopy" | "watchCopies"> {
  const copies = {
    hit: counter(registry, "svc_runner_input_cache_hits_total"),
    miss: counter(registry, "svc_runner_input_cache_misses_total"),
  };
  let readCopies = () => 0;
  gauge(registry, "svc_runner_input_cache_bytes", (bytes) => bytes.set(readCopies()));
  return {
    askedForCopy: (found) => copies[found ? "hit" : "miss"].inc(),
    watchCopies: (read) => {
      readCopies = read;
    },
  };
}

function setupMetrics(registry: Registry): Pick<RunnerMetrics, "watchSetup"> {
  const watchdog = counter(registry, "svc_sandbox_jail_setup_gate_watchdog_fires_total");
  return {
    watchSetup: async (setup) => {
      const timer = setTimeout(() => watchdog.inc(), SETUP_WATCHDOG_MS);
      try {
        return await setup();
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
