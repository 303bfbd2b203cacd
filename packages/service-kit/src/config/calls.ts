/**
 * All network connections of the architecture: which component calls which. docs/deploy.md shows this table, and the network
 * policies of deploy/kubernetes enforce it. The runner talks to jaild over a local unix socket, so that pair is not here.
 */
import type { Component } from "./types.ts";
import type { VariableName } from "./variables.ts";

/** Components with their own address in the network. */
export type Placed = Exclude<Component, "launcher">;

/** The launcher takes the runner's place: same port, same callers, same address to call. */
export const placeOf = (component: Component): Placed => (component === "launcher" ? "runner" : component);

/** Parties outside the service: callers of the API, the monitoring system, and the stores that the operator provides. */
export type Outside = "clients" | "monitoring" | "redis" | "objects";
export type Party = Component | Outside;

export interface Call {
  from: Party;
  to: Party;
  /** The variable with the address that the caller uses; undefined when the caller is an outside party. */
  by?: VariableName;
  /** The variable with the caller's internal token; undefined when the caller shows none, or shows a capability instead. */
  token?: InternalTokenName;
}

export type InternalTokenName = Extract<VariableName, `SVC_INTERNAL_TOKEN_${string}`>;

/** The variables with the port and the address that each component listens on. */
export const LISTENS = {
  api: { port: "SERVICE_PORT", host: "SERVICE_HOST" },
  worker: { port: "WORKER_HEALTH_PORT", host: "WORKER_HOST" },
  runner: { port: "PORT", host: "RUNNER_HOST" },
  "egress-gateway": { port: "EGRESS_GATEWAY_PORT", host: "EGRESS_GATEWAY_HOST" },
  "file-server": { port: "FILE_SERVER_PORT", host: "FILE_SERVER_HOST" },
  "tool-call-server": { port: "TOOL_CALL_SERVER_PORT", host: "TOOL_CALL_SERVER_HOST" },
} as const satisfies Record<Placed, { port: VariableName; host: VariableName }>;

export const CALLS: readonly Call[] = [
  { from: "clients", to: "api" },
  {
    from: "api",
    to: "file-server",
    by: "FILE_SERVER_URL",
    token: "SVC_INTERNAL_TOKEN_API_TO_FILE_SERVER",
  },
  {
    from: "api",
    to: "tool-call-server",
    by: "TOOL_CALL_SERVER_URL",
    token: "SVC_INTERNAL_TOKEN_API_TO_TOOL_CALL_SERVER",
  },
  {
    from: "api",
    to: "egress-gateway",
    by: "EGRESS_GATEWAY_URL",
    token: "SVC_INTERNAL_TOKEN_API_TO_EGRESS_GATEWAY",
  },
  {
    from: "worker",
    to: "egress-gateway",
    by: "EGRESS_GATEWAY_URL",
    token: "SVC_INTERNAL_TOKEN_WORKER_TO_EGRESS_GATEWAY",
  },
  { from: "worker", to: "runner", by: "SANDBOX_ENDPOINT" },
  { from: "runner", to: "egress-gateway", by: "SANDBOX_FORWARD_TARGET" },
  {
    from: "egress-gateway",
    to: "file-server",
    by: "EGRESS_GATEWAY_FILE_SERVER_URL",
    token: "SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_FILE_SERVER",
  },
  {
    from: "egress-gateway",
    to: "tool-call-server",
    by: "EGRESS_GATEWAY_TOOL_CALL_SERVER_URL",
    token: "SVC_INTERNAL_TOKEN_EGRESS_GATEWAY_TO_TOOL_CALL_SERVER",
  },
  { from: "api", to: "redis", by: "REDIS_URL" },
  { from: "worker", to: "redis", by: "REDIS_URL" },
  { from: "egress-gateway", to: "redis", by: "REDIS_URL" },
  { from: "file-server", to: "redis", by: "REDIS_URL" },
  { from: "tool-call-server", to: "redis", by: "REDIS_URL" },
  { from: "file-server", to: "objects", by: "S3_ENDPOINT" },
  { from: "monitoring", to: "api" },
  { from: "monitoring", to: "worker" },
  { from: "monitoring", to: "runner" },
  { from: "monitoring", to: "egress-gateway" },
  { from: "monitoring", to: "file-server" },
  { from: "monitoring", to: "tool-call-server" },
];
