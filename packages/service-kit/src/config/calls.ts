/**
 * Who speaks to whom over the network, and nothing else does: the arrows of the architecture. docs/deploy.md has this table, and the
 * network policies of deploy/kubernetes draw it. The runner and jaild speak by a unix socket of one machine, which is no arrow.
 */
import type { Component } from "./types.ts";
import type { VariableName } from "./variables.ts";

/** Components with a place of their own in the network. */
export type Placed = Exclude<Component, "launcher">;

/** The launcher stands in the runner's place: the same port, the same callers, the same address that it calls. */
export const placeOf = (component: Component): Placed => (component === "launcher" ? "runner" : component);

/** Parties that are not ours: callers of the API, what scrapes metrics, and what the operator provides. */
export type Outside = "clients" | "monitoring" | "redis" | "objects";
export type Party = Component | Outside;

export interface Call {
  from: Party;
  to: Party;
  /** The variable of the caller that has the address; undefined where the caller is not ours. */
  by?: VariableName;
  /** The variable with the token that the caller shows; undefined where it shows none of ours, or a capability. */
  token?: InternalTokenName;
}

export type InternalTokenName = Extract<VariableName, `SVC_INTERNAL_TOKEN_${string}`>;

/** Which variable has the port that a component listens on, and which the address. */
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
