/**
 * A receiver of traces for tests: takes what components export over OTLP/HTTP as JSON, and can be slow, refuse, or be away.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export interface ReceivedSpan {
  /** What its component calls itself, `service.name`. */
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  /** Absent for the first one of a trace. */
  parentSpanId: string | undefined;
  tracestate: string | undefined;
  /** 1: internal, 2: server, 3: client, 5: consumer. */
  kind: number;
  /** ms since 1970, with fractions. */
  startMs: number;
  endMs: number;
  attributes: Readonly<Record<string, unknown>>;
  resource: Readonly<Record<string, unknown>>;
  links: readonly { traceId: string; spanId: string }[];
  isError: boolean;
}

interface Attribute {
  key: string;
  value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  traceState?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  links: { traceId: string; spanId: string }[];
  status: { code?: number };
}

interface OtlpBody {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
}

/** `takes`: answers; `hangs`: never answers; `refuses`: answers 400. */
export type ReceiverMode = "takes" | "hangs" | "refuses";

export class OtlpReceiver {
  mode: ReceiverMode = "takes";
  readonly spans: ReceivedSpan[] = [];
  /** Everything that was sent, as text. */
  sent = "";
  /** Headers of the last request. */
  headers: Readonly<Record<string, unknown>> = {};
  requests = 0;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.requests++;
        this.headers = request.headers;
        if (this.mode === "hangs") return;
        if (this.mode === "refuses" || request.url !== "/v1/traces") {
          response.writeHead(400).end();
          return;
        }
        const bytes = Buffer.concat(chunks);
        const isPacked = request.headers["content-encoding"] === "gzip";
        this.#take((isPacked ? gunzipSync(bytes) : bytes).toString());
        response.writeHead(200, { "content-type": "application/json" }).end("{}");
      });
    });
  }

  /** Listens on a port of loopback; on any free one by default. */
  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Stops to listen, and cuts all connections. It can listen again. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  ofTrace(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  #take(text: string): void {
    this.sent += text;
    for (const { resource, scopeSpans } of (JSON.parse(text) as OtlpBody).resourceSpans) {
      const named = valuesOf(resource.attributes);
      for (const { spans } of scopeSpans) this.spans.push(...spans.map((span) => received(span, named)));
    }
  }
}

function received(span: OtlpSpan, resource: Record<string, unknown>): ReceivedSpan {
  return {
    service: String(resource["service.name"]),
    name: span.name,
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId || undefined,
    tracestate: span.traceState,
    kind: span.kind,
    startMs: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
    endMs: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
    attributes: valuesOf(span.attributes),
    resource,
    links: span.links.map(({ traceId, spanId }) => ({ traceId, spanId })),
    isError: span.status.code === 2,
  };
}

function valuesOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
