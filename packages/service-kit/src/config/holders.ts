/**
 * Which components hold which confidential variable. A component ignores confidential variables that it does not hold, for
 * example from a file that all components share. Variables that are not listed here are not confidential.
 */
import { PAIR_TOKENS } from "./internal-tokens.ts";
import type { Component } from "./types.ts";
import type { VariableName } from "./variables.ts";

const WITH_REDIS: readonly Component[] = [
  "api",
  "worker",
  "egress-gateway",
  "file-server",
  "tool-call-server",
];

const EVERY_ONE: readonly Component[] = [...WITH_REDIS, "runner", "launcher"];

export const HOLDERS: Partial<Record<VariableName, readonly Component[]>> = {
  SVC_INTERNAL_SERVICE_TOKEN: ["api", "worker", "egress-gateway", "file-server", "tool-call-server"],
  ...PAIR_TOKENS,
  SVC_CONTINUATION_SECRET: ["api"],
  SVC_JWT_PUBLIC_KEY: ["api"],
  SVC_JWT_JWKS_JSON: ["api"],
  SVC_EGRESS_GRANT_SECRET: ["egress-gateway"],
  SVC_EGRESS_GRANT_SECRET_PREVIOUS: ["egress-gateway"],
  SVC_EXECUTION_MANIFEST_PRIVATE_KEY: ["worker"],
  SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: ["runner", "launcher"],
  SVC_METRICS_TOKEN: EVERY_ONE,
  OTEL_EXPORTER_OTLP_HEADERS: EVERY_ONE,
  SVC_TOKEN: [],
  S3_ACCESS_KEY: ["file-server"],
  S3_SECRET_KEY: ["file-server"],
  S3_SESSION_TOKEN: ["file-server"],
  REDIS_URL: WITH_REDIS,
  SVC_REDIS_SENTINEL_PASSWORD: WITH_REDIS,
  REDIS_USERNAME: WITH_REDIS,
  REDIS_PASSWORD: WITH_REDIS,
};

export function holds(component: Component, name: VariableName): boolean {
  return HOLDERS[name]?.includes(component) ?? true;
}
