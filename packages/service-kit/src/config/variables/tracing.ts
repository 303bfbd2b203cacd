/** Variables of tracing, for every component. Their names and meanings are those of the OpenTelemetry specification. */
import { bool, count, ms, oneOf, ratio, secret, text, url, type Variable, withNote } from "../types.ts";

export const TRACING = {
  OTEL_TRACING_ENABLED: bool(false, "Traces runs and sends their spans to an OTLP receiver."),
  OTEL_SERVICE_NAME: withNote(
    text("", "Name of the component in traces. One for all makes them look like one service."),
    "`SERVICE_NAME`, else the component",
  ),
  OTEL_RESOURCE_ATTRIBUTES: text(
    "",
    "What else is said of each component: a comma list of name=value, values percent-encoded.",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(
    "http://localhost:4318",
    "Address of the OTLP receiver; spans go to /v1/traces below it.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: withNote(
    url("", "The whole address for spans, where it is another one.", { query: true }),
    "`OTEL_EXPORTER_OTLP_ENDPOINT` and `/v1/traces`",
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf(["http/json"], "http/json", "The only one that is spoken."),
  OTEL_EXPORTER_OTLP_HEADERS: secret(
    "Headers for the receiver, such as its token: a comma list of name=value, values percent-encoded.",
  ),
  OTEL_EXPORTER_OTLP_TIMEOUT: ms(10_000, "How long the receiver may take for a batch, repeats included."),
  OTEL_EXPORTER_OTLP_COMPRESSION: oneOf(["none", "gzip"], "none", "How batches are compressed."),
  OTEL_TRACES_SAMPLER: oneOf(
    [
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
      "always_on",
      "always_off",
      "traceidratio",
    ],
    "parentbased_always_on",
    "Which traces are kept. parentbased: the flag in the caller's traceparent decides where there is one.",
  ),
  OTEL_TRACES_SAMPLER_ARG: ratio(1, "Share of traces that traceidratio keeps, from 0 to 1."),
  OTEL_BSP_SCHEDULE_DELAY: ms(5000, "Longest time that an ended span waits for its batch."),
  OTEL_BSP_MAX_QUEUE_SIZE: count(
    2048,
    "Spans of a component that wait or are on their way; further ones are dropped.",
  ),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: count(512, "Spans in a batch."),
} satisfies Record<string, Variable<unknown>>;
