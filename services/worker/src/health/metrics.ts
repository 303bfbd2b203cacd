/** Metrics of jobs on the worker. */
import { findLanguage, type Job, type JobResult } from "@svc/contracts";
import { goesBack, type JobQueues, QUEUE_NAMES, type StartedJob } from "@svc/job-queue";
import { counter, gauge, histogram, type Registry, type StageMetrics, stageMetrics } from "@svc/service-kit";
import { endOf, type JobEnd } from "../round/run-line.ts";
import type { RunnerState } from "../runner/pool.ts";

export interface WorkerMetrics {
  /** Counts a job while it is processed, and how it ends. A job that discards a paused program runs nothing and is not counted. */
  during: (
    started: Pick<StartedJob, "job" | "queueMs">,
    work: () => Promise<JobResult>,
  ) => Promise<JobResult>;
  stages: StageMetrics;
  canarySucceeded: (atMs: number) => void;
  /** Sets the source of the runner counts. */
  watchRunners: (read: () => Record<RunnerState, number>) => void;
  /** Updates the gauges of queues and consumers at scrape. While Redis does not answer, no queue is served and no count is known. */
  refresh: (queues: JobQueues, running: { python: boolean; other: boolean }) => Promise<void>;
}

export function workerMetrics(registry: Registry): WorkerMetrics {
  const stages = stageMetrics(registry);
  return { during: jobMetrics(registry, stages), stages, ...serviceMetrics(registry) };
}

function jobMetrics(registry: Registry, stages: StageMetrics): WorkerMetrics["during"] {
  const ends: Record<JobEnd, ReturnType<typeof counter<"svc_jobs_completed_total">>> = {
    completed: counter(registry, "svc_jobs_completed_total"),
    failed: counter(registry, "svc_jobs_failed_total"),
    cancelled: counter(registry, "svc_jobs_cancelled_total"),
  };
  const duration = histogram(registry, "svc_job_processing_duration_seconds");
  const waited = histogram(registry, "svc_queue_wait_seconds");
  const inWork = new Set<Job>();
  const languages = new Set<string>();
  gauge(registry, "svc_active_jobs", (active) => {
    for (const language of languages) active.set({ language }, 0);
    for (const { language } of inWork) active.inc({ language });
  });
  /** Creates all counters of a language at its first job: an increase from nothing to 1 would not be seen. */
  const know = (language: string) => {
    if (languages.has(language)) return;
    languages.add(language);
    for (const end of Object.values(ends)) end.inc({ language }, 0);
  };
  return async ({ job, queueMs }, work) => {
    if (job.discard !== undefined) return work();
    const { language } = job;
    know(language);
    const waitSeconds = queueMs / 1000;
    // Nobody waits for a kept job, which may be in the queue for hours.
    if (job.kept === undefined)
      waited.observe({ queue: QUEUE_NAMES[findLanguage(language)?.queue ?? "other"] }, waitSeconds);
    stages.observe("queue", waitSeconds);
    const beganMs = performance.now();
    let end: JobEnd | undefined = "failed";
    inWork.add(job);
    try {
      const result = await work();
      end = goesBack(job, result) ? undefined : endOf(result);
      return result;
    } finally {
      inWork.delete(job);
      if (end !== undefined) ends[end].inc({ language });
      duration.observe({ language }, (performance.now() - beganMs) / 1000);
    }
  };
}

function serviceMetrics(registry: Registry): Omit<WorkerMetrics, "during" | "stages"> {
  const worker = gauge(registry, "svc_worker_running");
  const depth = gauge(registry, "svc_queue_jobs");
  let readRunners = (): Record<RunnerState, number> => ({ ready: 0, busy: 0, away: 0 });
  gauge(registry, "svc_worker_runners", (runners) => {
    for (const [state, count] of Object.entries(readRunners())) runners.set({ state }, count);
  });
  const canary = gauge(registry, "svc_canary_last_success_timestamp_seconds");
  return {
    canarySucceeded: (atMs) => canary.set(atMs / 1000),
    watchRunners: (read) => {
      readRunners = read;
    },
    refresh: async (queues, running) => {
      const kinds = ["python", "other"] as const;
      const counts = await Promise.all(kinds.map((kind) => queues[kind].counts().catch(() => undefined)));
      // Synchronous from here on: another scrape never sees half of the values.
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
