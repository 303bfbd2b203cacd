/** What the routes of the gateway work with. */
import type { Ledger, SealKeys } from "@svc/capabilities";
import type { Context, InnerClient, Redis } from "@svc/service-kit";
import type { Admission } from "./admission.ts";
import type { Authority } from "./authority.ts";
import type { GatewayMetrics } from "./metrics.ts";
import type { ToolCalls } from "./tool-calls.ts";

export interface GatewayDeps extends Context {
  redis: Redis;
  fileServer: InnerClient;
  keys: SealKeys;
  ledger: Ledger;
  authority: Authority;
  admission: Admission;
  toolCalls: ToolCalls;
  metrics: GatewayMetrics;
}
