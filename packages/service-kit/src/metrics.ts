/** Metrics of one process: a registry with the process metrics of prom-client, and the HTTP counters. */
import { HTTP_BUCKETS } from "@svc/contracts";
import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";

export { Counter, Gauge, Histogram, Registry } from "prom-client";

export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
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
