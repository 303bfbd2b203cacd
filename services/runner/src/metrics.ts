/** Metrics of executions on the runner. */
import { type ExecutionOutcome, JOB_BUCKETS } from "@svc/contracts";
import { Counter, Gauge, Histogram, type Registry } from "@svc/service-kit";

/** A jail that is not ready after this time counts as a watchdog fire. */
const SETUP_WATCHDOG_MS = 5000;

export interface RunnerMetrics {
  /** Counts an execution as running; the returned function counts its outcome. */
  began: (language: string) => (outcome: ExecutionOutcome) => void;
  /** Watches how long a jail takes to be ready. */
  watchSetup: <T>(setup: () => Promise<T>) => Promise<T>;
}

export function runnerMetrics(registry: Registry): RunnerMetrics {
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
  const watchdog = new Counter({
    name: "svc_sandbox_jail_setup_gate_watchdog_fires_total",
    help: "Jails that were not ready in time; should stay 0.",
    registers,
  });
  return {
    began: (language) => {
      const start = performance.now();
      active.inc({ state: "running" });
      return (outcome) => {
        active.dec({ state: "running" });
        total.inc({ language, outcome });
        duration.observe({ language, outcome }, (performance.now() - start) / 1000);
      };
    },
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
