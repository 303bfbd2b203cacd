/** The metrics of the gateway: requests by outcome, and conflicts between changes of the ledger. */
import {
  type Counter,
  counter,
  type HttpMetrics,
  type ObservedRequest,
  type Registry,
} from "@svc/service-kit";

const CLIENT_LEFT = 499;

export interface GatewayMetrics {
  requests: HttpMetrics;
  conflicts: Counter<never>;
}

export function gatewayMetrics(registry: Registry): GatewayMetrics {
  const requests = counter(registry, "svc_egress_requests_total");
  return {
    requests: {
      observe: (ended) =>
        requests.inc({ route: ended.route, outcome: outcomeOf(ended), reason: ended.code ?? "none" }),
    },
    conflicts: counter(registry, "svc_egress_ledger_conflicts_total"),
  };
}

function outcomeOf({ status }: ObservedRequest): "answered" | "refused" | "failed" | "left" {
  if (status === CLIENT_LEFT) return "left";
  if (status >= 500) return "failed";
  return status >= 400 ? "refused" : "answered";
}
