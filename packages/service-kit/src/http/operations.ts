/** The operational routes of a component: GET /metrics, guarded by SVC_METRICS_TOKEN when it is set. */
import { ServiceError } from "@svc/contracts";
import type { Registry } from "prom-client";
import { equalSecrets } from "./internal-token.ts";
import type { HttpServer } from "./types.ts";

export interface MetricsRouteOptions {
  registry: Registry;
  token: string;
  paths?: readonly string[];
  /** Runs before each scrape, for gauges that are counted then. */
  refresh?: () => Promise<void>;
}

export function metricsRoutes(app: HttpServer, options: MetricsRouteOptions): void {
  for (const path of options.paths ?? ["/metrics"]) {
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      const given = request.headers.authorization?.replace(/^bearer +/i, "") ?? "";
      if (options.token !== "" && !equalSecrets(given, options.token)) throw new ServiceError("unauthorized");
      await options.refresh?.();
      return reply
        .header("content-type", options.registry.contentType)
        .send(await options.registry.metrics());
    });
  }
}
