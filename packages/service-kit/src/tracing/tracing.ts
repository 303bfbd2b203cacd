/**
 * OpenTelemetry tracing as components see it. It is off by default: a component then has no `Tracing`, the SDK is not
 * loaded, and a run makes no span. Calls never throw and never wait; spans go to the receiver in the background, and where
 * that is away they are dropped. Attributes hold no code, no names of files and no tokens.
 */
import { ServiceError, type TraceContext } from "@svc/contracts";
import { parsedVariable } from "../config/load.ts";
import type { Component } from "../config/types.ts";
import type { Config } from "../config/variables.ts";
import type { Log } from "../log.ts";
import { parsePairs } from "./pairs.ts";

export type Attributes = Readonly<Record<string, string | number | boolean>>;
export type SpanKind = "server" | "client" | "consumer";
/** Headers of a request, or a context from a job. What is not as W3C Trace Context demands counts as absent. */
export type Carrier = Readonly<Record<string, unknown>>;

export interface Span {
  /** For what goes to other components. */
  readonly context: TraceContext;
  /** Begins a stage below this span. Stages follow one another: the one before ends, and so does the last one with the span. */
  stage: (name: string) => void;
  /** Adds a span before this one, below the same parent, that lasted `ms`. */
  precededBy: (name: string, ms: number) => void;
  /** Refers to a span of another trace. */
  link: (to: TraceContext | undefined) => void;
  /** `failed`: what it stands for failed, and so did its open stage. Counts once. */
  end: (attributes?: Attributes, failed?: boolean) => void;
}

export interface Tracing {
  /** Begins a span below the carrier's, or the first one of a new trace. */
  begin: (name: string, kind: SpanKind, carrier: Carrier, attributes?: Attributes) => Span;
  /** Begins a span below the carrier's; undefined where that has none: traces begin at the API. */
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

/** The id of a trace, for the log; undefined where nothing is traced. */
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
  /** Code of the error that it ended with. */
  error?: string | undefined;
}

/** What spans say of a run. */
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
