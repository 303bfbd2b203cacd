/**
 * Exports ended spans to the receiver over OTLP/HTTP, in batches of OpenTelemetry's processor. A component holds a bounded
 * number of spans that wait or are being sent. Further spans, and spans that the receiver does not accept, are dropped.
 */
import { TraceFlags } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace";
import type { DroppedSpans } from "./dropped.ts";

export interface ExportBounds {
  maxSpans: number;
  maxBatch: number;
  delayMs: number;
}

export class BoundedExport implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #dropped: DroppedSpans;
  readonly #maxSpans: number;
  #held = 0;

  constructor(exporter: SpanExporter, { maxSpans, maxBatch, delayMs }: ExportBounds, dropped: DroppedSpans) {
    this.#maxSpans = maxSpans;
    this.#dropped = dropped;
    const watched: SpanExporter = {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#exported(spans.length, result);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
    this.#batches = new BatchSpanProcessor({
      exporter: watched,
      maxQueueSize: maxSpans,
      maxExportBatchSize: Math.min(maxBatch, maxSpans),
      scheduledDelayMillis: delayMs,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    if (this.#held >= this.#maxSpans) {
      this.#dropped.add(1, "too many wait");
      return;
    }
    this.#held++;
    this.#batches.onEnd(span);
  }

  #exported(count: number, { code, error }: ExportResult): void {
    this.#held -= count;
    if (code === ExportResultCode.SUCCESS) this.#dropped.delivered();
    else this.#dropped.add(count, reasonOf(error));
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  async shutdown(): Promise<void> {
    await this.#batches.shutdown();
  }

  /** Drops all spans that are not delivered yet, and logs that. */
  giveUp(): void {
    this.#dropped.add(this.#held, "the component stopped");
    this.#held = 0;
    this.#dropped.tell();
  }
}

/** Never the receiver's own text, which may be anything. */
function reasonOf(error: Error | undefined): string {
  const { code } = Object(error) as { code?: unknown };
  if (typeof code === "number") return `the receiver answered ${code}`;
  return typeof code === "string" ? code : "the receiver did not take them in time";
}
