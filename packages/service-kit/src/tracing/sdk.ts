/**
 * Tracing with OpenTelemetry's SDK. Loaded only when tracing is on; `./svc` bundles it separately. Each component has its own
 * provider, even when several share a process. Parent contexts are passed as values: nothing is instrumented or patched.
 */
import { randomUUID } from "node:crypto";
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  SpanKind as SdkKind,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { TraceContext } from "@svc/contracts";
import type { Component } from "../config/types.ts";
import type { Config } from "../config/variables.ts";
import type { Log } from "../log.ts";
import { VERSION } from "../version.ts";
import { BoundedExport } from "./bounded-export.ts";
import { DroppedSpans } from "./dropped.ts";
import { OpenSpan } from "./open-span.ts";
import type { Attributes, Carrier, SpanKind, Tracing } from "./tracing.ts";

/** The parsed lists of pairs from variables. */
export interface Lists {
  headers: Record<string, string>;
  resource: Record<string, string>;
}

/** How long a stopping component waits for its last spans. */
const CLOSE_MS = 2000;
const KINDS = { server: SdkKind.SERVER, client: SdkKind.CLIENT, consumer: SdkKind.CONSUMER } as const;
const propagator = new W3CTraceContextPropagator();

export function createTracing(component: Component, config: Config, lists: Lists, log: Log): Tracing {
  const exported = new BoundedExport(
    exporterOf(config, lists),
    {
      maxSpans: config.OTEL_BSP_MAX_QUEUE_SIZE,
      maxBatch: config.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
      delayMs: config.OTEL_BSP_SCHEDULE_DELAY,
    },
    new DroppedSpans(log),
  );
  const provider = new TracerProvider({
    resource: resourceOf(component, config, lists),
    sampler: samplerOf(config),
    spanProcessors: [exported],
  });
  const tracer = provider.getTracer("svc");
  let closing: Promise<void> | undefined;
  return {
    begin: (name, kind, carrier, attributes) =>
      begin(tracer, name, kind, contextOf(carrier) ?? ROOT_CONTEXT, attributes),
    join: (name, kind, carrier, attributes) => {
      const parent = carrier && contextOf(carrier);
      return parent && begin(tracer, name, kind, parent, attributes);
    },
    close: () => {
      closing ??= close(provider, exported);
      return closing;
    },
  };
}

function begin(
  tracer: Tracer,
  name: string,
  kind: SpanKind,
  parent: Context,
  attributes: Attributes = {},
): OpenSpan {
  return new OpenSpan(tracer, { name, kind: KINDS[kind], attributes, parent, written, contextOf });
}

/** The span that the headers name; undefined when they name none, or not in the form of W3C Trace Context. */
function contextOf(carrier: Carrier): Context | undefined {
  const { traceparent, tracestate } = carrier;
  if (typeof traceparent !== "string") return undefined;
  const read = typeof tracestate === "string" ? { traceparent, tracestate } : { traceparent };
  const context = propagator.extract(ROOT_CONTEXT, read, defaultTextMapGetter);
  return trace.getSpanContext(context) === undefined ? undefined : context;
}

function written(context: Context): TraceContext {
  const carrier = { traceparent: "", tracestate: "" };
  propagator.inject(context, carrier, defaultTextMapSetter);
  const { traceparent, tracestate } = carrier;
  return tracestate === "" ? { traceparent } : carrier;
}

/** Gives up after a bounded time; never rejects. */
async function close(provider: TracerProvider, exported: BoundedExport): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, CLOSE_MS);
  const sent = provider.shutdown().catch(() => undefined);
  await Promise.race([sent, late.promise]);
  clearTimeout(timer);
  exported.giveUp();
}

function exporterOf(config: Config, { headers }: Lists): OTLPTraceExporter {
  const url = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || `${config.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;
  const options = {
    url,
    headers,
    timeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT,
    compression: config.OTEL_EXPORTER_OTLP_COMPRESSION,
  };
  return new OTLPTraceExporter(options as ConstructorParameters<typeof OTLPTraceExporter>[0]);
}

function resourceOf(component: Component, config: Config, { resource }: Lists): Resource {
  return resourceFromAttributes({
    "service.version": VERSION,
    "service.instance.id": config.INSTANCE_ID || randomUUID(),
    ...resource,
    "service.name": config.OTEL_SERVICE_NAME || config.SERVICE_NAME || component,
  });
}

function samplerOf(config: Config): Sampler {
  const isParentBased = config.OTEL_TRACES_SAMPLER.startsWith("parentbased_");
  const root = rootSampler(config);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

function rootSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share }: Config): Sampler {
  if (name.endsWith("traceidratio")) return new TraceIdRatioBasedSampler(share);
  return name.endsWith("always_off") ? new AlwaysOffSampler() : new AlwaysOnSampler();
}
