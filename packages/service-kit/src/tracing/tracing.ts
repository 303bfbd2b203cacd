/**
 * The interface of OpenTelemetry tracing for components. Tracing is off by default: then a component has no `Tracing`, the SDK is
 * not loaded, and a run makes no spans. Calls never throw and never wait. Spans go to the receiver in the background, and are
 * dropped when it is not available. Attributes must not contain code, file names or tokens.
 */
import { ServiceError, type TraceContext } from "@svc/contracts";
import { parsedVariable } from "../config/load.ts";
import type { Component } from "../config/types.ts";
import type { Config } from "../config/variables.ts";
import type { Log } from "../log.ts";
import { parsePairs } from "./pairs.ts";

export type Attributes = Readonly<Record<string, string | number | boolean>>;
export type SpanKind = "server" | "client" | "consumer";
/** Headers of a request, or a context from a job. A context that violates W3C Trace Context counts as absent. */
export type Carrier = Readonly<Record<string, unknown>>;

export interface Span {
  /** The context to send to other components. */
  readonly context: TraceContext;
  /** Begins a stage as a child of this span, and ends the previous stage. The last stage ends with the span. */
  stage: (name: string) => void;
  /** Adds a span of `ms` milliseconds that ended when this one began, with the same parent. */
  precededBy: (name: string, ms: number) => void;
  /** Links to a span of another trace. */
  link: (to: TraceContext | undefined) => void;
  /** `failed`: marks the span and its open stage as failed. Only the first call has an effect. */
  end: (attributes?: Attributes, failed?: boolean) => void;
}

export interface Tracing {
  /** Begins a span as a child of the carrier's span, or as the first span of a new trace. */
  begin: (name: string, kind: SpanKind, carrier: Carrier, attributes?: Attributes) => Span;
  /** Begins a span as a child of the carrier's span. Undefined when the carrier has none, because traces begin at the API. */
  join: (
    name: string,
    kind: SpanKind,
    carrier: Carrier | undefined,
    attributes?: Attributes,
  ) => Span | undefined;
  /** Sends the remaining spans, and gives up after a bounded time. */
  close: () => Promise<void>;
}

/** Undefined: tracing is off. */
export async function startTracing(
  component: Component,
  config: Config,
  log: Log,
): Promise<Tracing | undefined> {
  if (!config.OTEL_TRACING_ENABLED) return undefined;
  const lists = {
    headers: parsedVariable("OTEL_EXPORTER_OTLP_HEADERS", config, parsePairs),
    resource: parsedVariable("OTEL_RESOURCE_ATTRIBUTES", config, parsePairs),
  };
  const { createTracing } = await import("./sdk.ts");
  return createTracing(component, config, lists, log);
}

/** The id of a trace, for the log; undefined without a context. */
export function traceIdOf(context: TraceContext | undefined): string | undefined {
  return context?.traceparent.split("-")[1];
}

/** Ends a span of work that threw. */
export function endFailed(span: Span | undefined, error: unknown): void {
  span?.end({ "error.type": error instanceof ServiceError ? error.code : "internal_error" }, true);
}

export interface TracedRun {
  exec_id?: string | undefined;
  language?: string | undefined;
  outcome?: string | undefined;
  /** Code of the error that the run ended with. */
  error?: string | undefined;
}

/** The span attributes of a run. */
export function runAttributes({ exec_id, language, outcome, error }: TracedRun): Attributes {
  const all = {
    "svc.exec_id": exec_id,
    "svc.language": language,
    "svc.outcome": outcome,
    "error.type": error,
  };
  const known = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(known);
}
