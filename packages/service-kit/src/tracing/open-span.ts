/**
 * A span and its stages on one clock: moments are of the monotonic clock, laid onto the wall clock once for each span that
 * a component begins. Stages follow one another without gaps.
 */
import {
  type Context,
  type Attributes as SdkAttributes,
  type Span as SdkSpan,
  type SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { TraceContext } from "@svc/contracts";
import type { Attributes, Carrier, Span } from "./tracing.ts";

/** The two clocks of a process that runs for long drift apart by more. */
const MAX_DRIFT_MS = 2;

/** What is added to the monotonic clock. Its origin is more precise than the wall clock, which tells whole milliseconds. */
function wallOffset(): number {
  const { timeOrigin } = performance;
  const drift = Date.now() - (timeOrigin + performance.now());
  return Math.abs(drift) > MAX_DRIFT_MS ? timeOrigin + drift : timeOrigin;
}

export interface SpanOptions {
  name: string;
  kind: SpanKind;
  attributes: Attributes;
  parent: Context;
  /** As it goes to other components. */
  written: (context: Context) => TraceContext;
  contextOf: (carrier: Carrier) => Context | undefined;
}

export class OpenSpan implements Span {
  readonly #tracer: Tracer;
  readonly #options: SpanOptions;
  readonly #offset = wallOffset();
  readonly #beganMs: number;
  readonly #span: SdkSpan;
  readonly #context: Context;
  #stage: SdkSpan | undefined;
  #hasEnded = false;

  constructor(tracer: Tracer, options: SpanOptions) {
    const { name, kind, attributes, parent } = options;
    this.#tracer = tracer;
    this.#options = options;
    this.#beganMs = this.#now();
    this.#span = tracer.startSpan(name, { kind, attributes, startTime: this.#beganMs }, parent);
    this.#context = trace.setSpan(parent, this.#span);
  }

  #now(): number {
    return this.#offset + performance.now();
  }

  get context(): TraceContext {
    return this.#options.written(this.#context);
  }

  stage(name: string): void {
    if (this.#hasEnded) return;
    const now = this.#now();
    this.#stage?.end(now);
    this.#stage = this.#tracer.startSpan(name, { startTime: now }, this.#context);
  }

  precededBy(name: string, ms: number): void {
    const startTime = this.#beganMs - ms;
    this.#tracer.startSpan(name, { startTime }, this.#options.parent).end(this.#beganMs);
  }

  link(to: TraceContext | undefined): void {
    const context = to && this.#options.contextOf(to);
    const linked = context && trace.getSpanContext(context);
    if (linked !== undefined && !this.#hasEnded) this.#span.addLink({ context: linked });
  }

  end(attributes: Attributes = {}, failed = false): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const now = this.#now();
    for (const span of [this.#stage, this.#span]) {
      if (failed) span?.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#stage?.end(now);
    this.#span.setAttributes(attributes as SdkAttributes);
    this.#span.end(now);
  }
}
