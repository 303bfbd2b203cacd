/**
 * POST /mcp: one message of the Model Context Protocol (streamable HTTP). The code for the protocol is loaded with the first message. No
 * state is kept between requests, so there is nothing to GET or DELETE. A client that disconnects cancels its request.
 */
import { type Principal, ServiceError } from "@svc/contracts";
import {
  type Config,
  clientGone,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  VERSION,
  whenClosed,
} from "@svc/service-kit";
import { startLimit } from "../exec/rules.ts";
import { innerHeaders, ownAddress } from "./inner.ts";
import { labelOf, newLabel, OpenCalls, type Sender } from "./open-calls.ts";

export interface McpDeps {
  config: Config;
  principalOf: (request: FastifyRequest) => Principal;
}

interface Message {
  id?: unknown;
  method?: unknown;
  params?: { requestId?: unknown } | null;
}

/** A client that reads no byte of its answer for this long is disconnected. */
const STALLED_MS = 60_000;
const SESSION = "mcp-session-id";
/** The request headers that the protocol uses. */
const READ = ["accept", "content-type", "mcp-protocol-version"] as const;

export function mcpRoute(
  app: HttpServer,
  { config, principalOf }: McpDeps,
  stalledMs: number = STALLED_MS,
): void {
  const calls = new OpenCalls();
  app.post(
    "/mcp",
    {
      bodyLimit: startLimit(config),
      // With a scope by body, few bodies of a caller are read at once. The call that a message makes is counted again in its own scope.
      config: { scopeOfBody: () => "fetches" },
      schema: { hide: true },
    },
    async (request, reply) => {
      const message = request.body as Message | null | undefined;
      // There is no body, or it is null.
      if (message == null) throw new ServiceError("invalid_json");
      // Each message of a list would be its own call, so one request could make thousands of calls.
      if (Array.isArray(message)) throw new ServiceError("invalid_request", ONE_MESSAGE);
      // A stream without events still sends comments, so a client that reads never reaches this timeout.
      reply.raw.setTimeout(stalledMs, () => reply.raw.destroy());
      const sender = { principal: principalOf(request), label: labelOf(request.headers[SESSION]) };
      if (message.method === "notifications/cancelled") calls.cancel(sender, message.params?.requestId);
      if (message.method === "initialize") reply.header(SESSION, newLabel());
      return send(
        reply,
        await answer(app, request, message, untilCancelled(reply, calls, sender, message.id)),
      );
    },
  );
}

const ONE_MESSAGE = "Send one JSON-RPC message in a request, not a list of them.";

/** Aborted when the client has left or cancelled the request. */
function untilCancelled(reply: FastifyReply, calls: OpenCalls, sender: Sender, id: unknown): AbortSignal {
  const cancelled = new AbortController();
  const leave = calls.enter(sender, id, () => cancelled.abort());
  whenClosed(reply, leave);
  return AbortSignal.any([cancelled.signal, clientGone(reply, new ServiceError("execution_cancelled"))]);
}

async function answer(
  app: HttpServer,
  request: FastifyRequest,
  message: unknown,
  signal: AbortSignal,
): Promise<Response> {
  const { answerPost } = await import("@svc/mcp/http");
  const headers = new Headers(
    READ.map((name) => [name, String(request.headers[name] ?? "")] as const).filter(
      ([, value]) => value !== "",
    ) as [string, string][],
  );
  return answerPost({
    inner: { baseUrl: ownAddress(app), headers: innerHeaders(request) },
    headers,
    message,
    signal,
    version: VERSION,
    onError: (err) => request.log.debug({ err, request_id: request.id }, "an MCP message failed"),
  });
}

function send(reply: FastifyReply, { status, headers, body }: Response): FastifyReply {
  reply.code(status);
  for (const [name, value] of headers) if (name !== "connection") reply.header(name, value);
  return reply.serializer((text: unknown) => text as string).send(body ?? "");
}
