/** What the steps of an execution share. */
import type { ExecuteResponse } from "@svc/contracts";
import type { Config, Log, Span } from "@svc/service-kit";
import type { LimitOverrides } from "@svc/service-kit/config/limit-overrides";
import type { Slots } from "../admission/slots.ts";
import type { GatewayClient, RunGateway } from "../gateway.ts";
import type { InputSource } from "../inputs/source.ts";
import type { RunnerMetrics } from "../metrics.ts";
import type { WarmJails } from "../warm/jails.ts";
import type { TellEvent } from "./run-events.ts";
import type { Runtimes } from "./runtimes.ts";

export interface ExecuteDeps {
  config: Config;
  overrides: LimitOverrides;
  runtimes: Runtimes;
  slots: Slots;
  gateway: GatewayClient;
  inputs: InputSource;
  metrics: RunnerMetrics;
  jails: WarmJails;
  log: Log;
}

/** An answer without the fields that are known before the run. */
export type RunAnswer = Omit<ExecuteResponse, "language" | "version" | "limits">;

export interface Call {
  requestId: string;
  /** Name of the execution in the log; absent for a caller that gives none. */
  execId: string | undefined;
  /** Aborted when the caller goes away or the runner stops. */
  signal: AbortSignal;
  log: Log;
  /** Absent: the caller does not want output while the program runs. */
  tell?: TellEvent | undefined;
  /** Absent when nothing is traced. */
  trace?: Span | undefined;
}

/** Where the outputs of an execution go, and the grant that allows it. */
export interface Destination {
  sessionId: string;
  outputSession: string;
  run: RunGateway;
}
