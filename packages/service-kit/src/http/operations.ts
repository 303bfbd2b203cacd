/**
 * The operational routes of a component: GET /metrics, guarded by SVC_METRICS_TOKEN when that is set. When the component is
 * reachable from outside and the variable is not set, the route refuses everybody.
 */
import { ServiceError } from "@svc/contracts";
import type { Registry } from "prom-client";
import { equalSecrets } from "./internal-token.ts";
import type { HttpServer } from "./types.ts";

export interface MetricsRouteOptions {
  registry: Registry;
  token: string;
  /** Whether clients on other machines may reach the component. */
  isReachable?: boolean;
  paths?: readonly string[];
  /** Runs before each scrape, to update gauges. */
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
