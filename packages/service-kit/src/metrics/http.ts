/** The metrics of HTTP requests. */
import type { ErrorCode } from "@svc/contracts";
import type { Registry } from "prom-client";
import { counter, histogram } from "./made.ts";

/** A request that has ended. */
export interface ObservedRequest {
  method: string;
  /** Pattern of the route. */
  route: string;
  /** Status of the answer; 499 when the client left. */
  status: number;
  seconds: number;
  /** The code of the error in the answer, or of the error that broke the answer. */
  code: ErrorCode | undefined;
}

export interface HttpMetrics {
  observe: (ended: ObservedRequest) => void;
}

/** `prefix`: `svc_http` on the API and the file server, `svc_sandbox_http` on the runner. */
export function httpMetrics(registry: Registry, prefix: "svc_http" | "svc_sandbox_http"): HttpMetrics {
  const requests = counter(registry, `${prefix}_requests_total`);
  const duration = histogram(registry, `${prefix}_request_duration_seconds`);
  return {
    observe: ({ method, route, status, seconds }) => {
      const labels = { method, route, status: String(status) };
      requests.inc(labels);
      duration.observe(labels, seconds);
    },
  };
}
