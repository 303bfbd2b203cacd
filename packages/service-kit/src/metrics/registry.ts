/** The metrics registry of one component. It starts with prom-client's process metrics and the build information. */
import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { VERSION } from "../version.ts";
import { gauge } from "./made.ts";

export { Counter, Gauge, Histogram, Registry } from "prom-client";

/** prom-client samples the event loop lag with a timer. Its default would wake an idle process a hundred times a second. */
const LAG_SAMPLE_MS = 3_600_000;
/** The lag metrics from these samples, which are useless at once an hour and so removed. */
const SAMPLED_LAGS = ["min", "max", "mean", "stddev", "p50", "p90", "p99"];

/** `commit`: the commit of the running code, when it is known. */
export function createRegistry(commit = ""): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS });
  for (const lag of SAMPLED_LAGS) registry.removeSingleMetric(`nodejs_eventloop_lag_${lag}_seconds`);
  watchEventLoop(registry);
  gauge(registry, "svc_build_info").set({ version: VERSION, commit: commit || "unknown" }, 1);
  return registry;
}

/** How busy the event loop was since the last scrape. It costs nothing between scrapes. */
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
