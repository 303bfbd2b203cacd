/** The dependencies of the file routes. */
import type { Principal } from "@svc/contracts";
import type { Config, FastifyRequest, InnerClient, Log, PlanLimits, Redis, Registry } from "@svc/service-kit";

export interface FileRoutesDeps {
  config: Config;
  log: Log;
  /** Client of the file server; `unreachable` must be `storage_unavailable`. */
  fileServer: InnerClient;
  redis: Redis;
  principalOf: (request: FastifyRequest) => Principal;
  planLimitsOf: (request: FastifyRequest) => PlanLimits;
  registry: Registry;
}
