/** The liveness and the readiness route of each component. */
import type { Service } from "@svc/cli/instance";

export const ROUTES: Readonly<Record<Service, readonly [live: string, ready: string]>> = {
  api: ["/v1/health", "/v1/ready"],
  worker: ["/live", "/ready"],
  runner: ["/health", "/api/v2/health"],
  "file-server": ["/health", "/ready"],
  "tool-call-server": ["/live", "/ready"],
  "egress-gateway": ["/live", "/ready"],
};
