/** Metrics of one process: a registry with the process metrics of prom-client, and the HTTP counters. */
import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { HTTP_BUCKETS } from "@svc/contracts";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export { Counter, Gauge, Histogram, Registry } from "prom-client";

/** A clock that ticks for its own sake would wake an idle process a hundred times a second: it ticks once an hour. */
const LAG_SAMPLE_MS = 3_600_000;
/** What would be made of its ticks. */
const SAMPLED_LAGS = ["min", "max", "mean", "stddev", "p50", "p90", "p99"];

export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS });
  for (const lag of SAMPLED_LAGS) registry.removeSingleMetric(`nodejs_eventloop_lag_${lag}_seconds`);
  watchEventLoop(registry);
  return registry;
}

/** How busy the event loop was since the last time that somebody asked; measuring it costs nothing in between. */
function watchEventLoop(registry: Registry): void {
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  new Gauge({
    name: "nodejs_eventloop_utilization_ratio",
    help: "Share of the time since the last scrape in which the event loop had work.",
    registers: [registry],
    collect() {
      const now = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(now, before).utilization);
      before = now;
    },
  });
}

export interface HttpMetrics {
  observe: (method: string, route: string, status: number, seconds: number) => void;
}

/** `prefix`: `svc_http` on the API and the file server, `svc_sandbox_http` on the runner. */
export function httpMetrics(registry: Registry, prefix: string): HttpMetrics {
  const labelNames = ["method", "route", "status"] as const;
  const requests = new Counter({
    name: `${prefix}_requests_total`,
    help: "HTTP requests by method, route pattern and status (499: the client left).",
    labelNames,
    registers: [registry],
  });
  const duration = new Histogram({
    name: `${prefix}_request_duration_seconds`,
    help: "Duration of HTTP requests in seconds.",
    labelNames,
    buckets: [...HTTP_BUCKETS],
    registers: [registry],
  });
  return {
    observe: (method, route, status, seconds) => {
      const labels = { method, route, status: String(status) };
      requests.inc(labels);
      duration.observe(labels, seconds);
    },
  };
}
