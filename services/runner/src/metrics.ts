/** Metrics of executions on the runner. */
import { type ExecutionOutcome, JOB_BUCKETS } from "@svc/contracts";
import { Counter, Gauge, Histogram, type Registry } from "@svc/service-kit";

/** A jail that is not ready after this time counts as a watchdog fire. */
const SETUP_WATCHDOG_MS = 5000;

/** Why a paused program was killed: it waited too long, was one too many, took scarce memory, or can get no answer. */
export type EvictionCause = "timeout" | "max_paused" | "max_paused_per_principal" | "memory" | "unanswerable";

/** Of one zygote. */
export interface WarmCount {
  zygote: string;
  waiting: number;
  wanted: number;
}

export interface CountedExecution {
  paused: () => void;
  resumed: () => void;
  /** It is over without an end of its own: the program is run again from the top, or nobody wants it any more. */
  abandoned: () => void;
  ended: (outcome: ExecutionOutcome) => void;
}

export interface RunnerMetrics {
  /** Counts an execution as running. Its duration is the time in which it was not paused. */
  began: (language: string) => CountedExecution;
  /** A program began, in a process that was there before it, or in a new one. */
  started: (warm: boolean) => void;
  /** Says from where the number of jails that wait warm is read. */
  watchWarm: (read: () => readonly WarmCount[]) => void;
  /** A large input was opened: from a copy on the runner, or not. */
  askedForCopy: (found: boolean) => void;
  /** Says from where the size of all copies is read. */
  watchCopies: (read: () => number) => void;
  evicted: (cause: EvictionCause) => void;
  /** Watches how long a jail takes to be ready. */
  watchSetup: <T>(setup: () => Promise<T>) => Promise<T>;
}

export function runnerMetrics(registry: Registry): RunnerMetrics {
  return {
    ...executionMetrics(registry),
    ...startMetrics(registry),
    ...inputCopyMetrics(registry),
    ...setupMetrics(registry),
  };
}

function executionMetrics(registry: Registry): Pick<RunnerMetrics, "began" | "evicted"> {
  const registers = [registry];
  const labelNames = ["language", "outcome"] as const;
  const total = new Counter({
    name: "svc_sandbox_executions_total",
    help: "Executions by language and outcome.",
    labelNames,
    registers,
  });
  const duration = new Histogram({
    name: "svc_sandbox_execution_duration_seconds",
    help: "Duration of executions in seconds.",
    labelNames,
    buckets: [...JOB_BUCKETS],
    registers,
  });
  const active = new Gauge({
    name: "svc_sandbox_active_executions",
    help: "Executions now on the runner.",
    labelNames: ["state"] as const,
    registers,
  });
  active.set({ state: "running" }, 0);
  active.set({ state: "paused" }, 0);
  const evictions = new Counter({
    name: "svc_ptc_live_evictions_total",
    help: "Paused programs that were killed, by cause.",
    labelNames: ["cause"] as const,
    registers,
  });
  return {
    began: (language) =>
      countExecution(active, (outcome, seconds) => {
        total.inc({ language, outcome });
        duration.observe({ language, outcome }, seconds);
      }),
    evicted: (cause) => evictions.inc({ cause }),
  };
}

function countExecution(
  active: Gauge<"state">,
  record: (outcome: ExecutionOutcome, seconds: number) => void,
): CountedExecution {
  let state: "running" | "paused" = "running";
  let since = performance.now();
  let ranMs = 0;
  const enter = (next: typeof state) => {
    active.dec({ state });
    if (state === "running") ranMs += performance.now() - since;
    state = next;
    since = performance.now();
    active.inc({ state });
  };
  active.inc({ state });
  return {
    paused: () => enter("paused"),
    resumed: () => enter("running"),
    abandoned: () => active.dec({ state }),
    ended: (outcome) => {
      enter(state);
      active.dec({ state });
      record(outcome, ranMs / 1000);
    },
  };
}

function startMetrics(registry: Registry): Pick<RunnerMetrics, "started" | "watchWarm"> {
  const starts = new Counter({
    name: "svc_sandbox_starts_total",
    help: "Programs that began, warm or cold.",
    labelNames: ["start"] as const,
    registers: [registry],
  });
  let readWarm = (): readonly WarmCount[] => [];
  new Gauge({
    name: "svc_sandbox_warm_jails",
    help: "Jails that wait warm for a program, and how many are wanted.",
    labelNames: ["zygote", "number"] as const,
    registers: [registry],
    collect() {
      for (const { zygote, waiting, wanted } of readWarm()) {
        this.set({ zygote, number: "waiting" }, waiting);
        this.set({ zygote, number: "wanted" }, wanted);
      }
    },
  });
  return {
    started: (warm) => starts.inc({ start: warm ? "warm" : "cold" }),
    watchWarm: (read) => {
      readWarm = read;
    },
  };
}

function inputCopyMetrics(registry: Registry): Pick<RunnerMetrics, "askedForCopy" | "watchCopies"> {
  const registers = [registry];
  const copies = {
    hit: new Counter({
      name: "svc_runner_input_cache_hits_total",
      help: "Large inputs that came from a copy on the runner.",
      registers,
    }),
    miss: new Counter({
      name: "svc_runner_input_cache_misses_total",
      help: "Large inputs that were fetched.",
      registers,
    }),
  };
  let readCopies = () => 0;
  new Gauge({
    name: "svc_runner_input_cache_bytes",
    help: "Size of all copies of inputs on the runner.",
    registers,
    collect() {
      this.set(readCopies());
    },
  });
  return {
    askedForCopy: (found) => copies[found ? "hit" : "miss"].inc(),
    watchCopies: (read) => {
      readCopies = read;
    },
  };
}

function setupMetrics(registry: Registry): Pick<RunnerMetrics, "watchSetup"> {
  const watchdog = new Counter({
    name: "svc_sandbox_jail_setup_gate_watchdog_fires_total",
    help: "Jails that were not ready in time; should stay 0.",
    registers: [registry],
  });
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
