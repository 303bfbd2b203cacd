/**
 * The operational routes of a component: GET /metrics, guarded by SVC_METRICS_TOKEN when it is set. Where callers from outside
 * can reach it, it answers nobody without a token.
 */
import { ServiceError } from "@svc/contracts";
import type { Registry } from "prom-client";
import { equalSecrets } from "./internal-token.ts";
import type { HttpServer } from "./types.ts";

export interface MetricsRouteOptions {
  registry: Registry;
  token: string;
  /** Whether others than programs of this machine may reach the component. */
  isReachable?: boolean;
  paths?: readonly string[];
  /** Runs before each scrape, for gauges that are counted then. */
  refresh?: () => Promise<void>;
}

const NO_TOKEN = "Metrics are closed here until SVC_METRICS_TOKEN is set.";

export function metricsRoutes(app: HttpServer, options: MetricsRouteOptions): void {
  for (const path of options.paths ?? ["/metrics"]) {
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      if (options.token === "" && options.isReachable) throw new ServiceError("unauthorized", NO_TOKEN);
      const given = request.headers.authorization?.replace(/^bearer +/i, "") ?? "";
      if (options.token !== "" && !equalSecrets(given, options.token)) throw new ServiceError("unauthorized");
      await options.refresh?.();
      return reply
        .header("content-type", options.registry.contentType)
        .send(await options.registry.metrics());
    });
  }
}
