/** Metrics of jobs on the worker. */
import { JOB_BUCKETS } from "@svc/contracts";
import type { JobQueues } from "@svc/job-queue";
import { Counter, Gauge, Histogram, type Registry } from "@svc/service-kit";
import type { JobEnd } from "../round/run-line.ts";

export interface WorkerMetrics {
  began: (language: string) => (end: JobEnd) => void;
  canarySucceeded: (atMs: number) => void;
  /** Counts the queues and the consumers, at scrape. While Redis does not answer no queue is served, and no count is known. */
  refresh: (queues: JobQueues, running: { python: boolean; other: boolean }) => Promise<void>;
}

export function workerMetrics(registry: Registry): WorkerMetrics {
  return { began: jobMetrics(registry), ...serviceMetrics(registry) };
}

function jobMetrics(registry: Registry): WorkerMetrics["began"] {
  const registers = [registry];
  const labelNames = ["language"] as const;
  const completed = new Counter({
    name: "svc_jobs_completed_total",
    help: "Jobs that ended with an answer.",
    labelNames,
    registers,
  });
  const failed = new Counter({
    name: "svc_jobs_failed_total",
    help: "Jobs that ended with an error of the service.",
    labelNames,
    registers,
  });
  const cancelled = new Counter({
    name: "svc_jobs_cancelled_total",
    help: "Jobs that were cancelled, as when their client left.",
    labelNames,
    registers,
  });
  const counters: Record<JobEnd, Counter<"language">> = { completed, failed, cancelled };
  const duration = new Histogram({
    name: "svc_job_processing_duration_seconds",
    help: "Time from a job's start to its end in seconds.",
    labelNames,
    buckets: [...JOB_BUCKETS],
    registers,
  });
  const active = new Gauge({ name: "svc_active_jobs", help: "Jobs in work.", labelNames, registers });
  return (language) => {
    const start = performance.now();
    active.inc({ language });
    return (end) => {
      active.dec({ language });
      counters[end].inc({ language });
      duration.observe({ language }, (performance.now() - start) / 1000);
    };
  };
}

function serviceMetrics(registry: Registry): Omit<WorkerMetrics, "began"> {
  const registers = [registry];
  const worker = new Gauge({
    name: "svc_worker_running",
    help: "1 while the consumer of a queue is running and Redis answers.",
    labelNames: ["worker_type"] as const,
    registers,
  });
  const depth = new Gauge({
    name: "svc_queue_jobs",
    help: "Jobs in the queues by state.",
    labelNames: ["queue", "state"] as const,
    registers,
  });
  const canary = new Gauge({
    name: "svc_canary_last_success_timestamp_seconds",
    help: "Time of the last execution that went through queue, worker and jail; of two queues the older one.",
    registers,
  });
  return {
    canarySucceeded: (atMs) => canary.set(atMs / 1000),
    refresh: async (queues, running) => {
      const kinds = ["python", "other"] as const;
      const counts = await Promise.all(kinds.map((kind) => queues[kind].counts().catch(() => undefined)));
      // From here on in one go: another scrape never sees half of it.
      depth.reset();
      for (const [at, kind] of kinds.entries()) {
        worker.set({ worker_type: kind }, running[kind] && counts[at] !== undefined ? 1 : 0);
        for (const [state, count] of Object.entries(counts[at] ?? {})) {
          depth.set({ queue: queues[kind].name, state }, count);
        }
      }
    },
  };
}
