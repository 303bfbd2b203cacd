/**
 * A span and its stages. All times come from the monotonic clock, with an offset to the wall clock that is fixed once per span.
 * Stages follow one another without gaps.
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

/** In a long-running process the two clocks drift apart by more than this. */
const MAX_DRIFT_MS = 2;

/** The offset to add to the monotonic clock. Prefers `timeOrigin`, which is more precise than the wall clock's whole milliseconds. */
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
  /** The form of a context for other components. */
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
