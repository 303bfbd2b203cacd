/**
 * Every environment variable of every component, with its default and meaning. `variables/` has a file for each reader. All
 * components know all names, so they can share one file of variables.
 */
import type { Variable } from "./types.ts";
import { API } from "./variables/api.ts";
import { COMMON } from "./variables/common.ts";
import { EGRESS_GATEWAY } from "./variables/egress-gateway.ts";
import { EXECUTIONS } from "./variables/executions.ts";
import { FILE_SERVER } from "./variables/file-server.ts";
import { LAUNCHER } from "./variables/launcher.ts";
import { MICROVM } from "./variables/microvm.ts";
import { RUNNER } from "./variables/runner.ts";
import { TOOL_CALL_SERVER } from "./variables/tool-call-server.ts";
import { TRACING } from "./variables/tracing.ts";
import { UNAVAILABLE } from "./variables/unavailable.ts";
import { WORKER } from "./variables/worker.ts";

/** By reader, under the headings of docs/configuration.md. */
export const VARIABLES_BY_READER: Readonly<Record<string, Readonly<Record<string, Variable<unknown>>>>> = {
  "Every component": COMMON,
  "Executions: several components": EXECUTIONS,
  API,
  Worker: WORKER,
  Runner: RUNNER,
  "Egress gateway": EGRESS_GATEWAY,
  "File server": FILE_SERVER,
  "Tool call server": TOOL_CALL_SERVER,
  MicroVMs: MICROVM,
  "`./svc up` and jaild": LAUNCHER,
  "Tracing: every component": TRACING,
  "Not offered by this version": UNAVAILABLE,
};

export const VARIABLES = {
  ...COMMON,
  ...EXECUTIONS,
  ...API,
  ...WORKER,
  ...RUNNER,
  ...EGRESS_GATEWAY,
  ...FILE_SERVER,
  ...TOOL_CALL_SERVER,
  ...LAUNCHER,
  ...MICROVM,
  ...TRACING,
  ...UNAVAILABLE,
};

export type VariableName = keyof typeof VARIABLES;
export type Config = Readonly<{
  [Name in VariableName]: (typeof VARIABLES)[Name] extends Variable<infer T> ? T : never;
}>;
