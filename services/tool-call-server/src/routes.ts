/** The routes of sessions and tool calls: parse, call, reply. Only components that hold the internal token get here. */
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  isId,
  openToolSessionSchema,
  type ProcessedResults,
  pendingQuerySchema,
  ServiceError,
  TOOL_CALL_ID_HEADER,
  TOOL_CALL_ID_PATTERN,
  TOOL_CALL_WAIT_HEADER,
  type ToolSession,
  toolCallSchema,
  toolResultsSchema,
} from "@svc/contracts";
import {
  type Config,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  parseOrRefuse,
} from "@svc/service-kit";
import { parsePlainJson } from "./json.ts";
import type { ToolCallMetrics } from "./metrics.ts";
import type { Call, Sessions } from "./sessions.ts";
import type { Waiting } from "./waiting.ts";

const JSON_TYPE = "application/json; charset=utf-8";

export interface RouteDeps {
  config: Config;
  sessions: Sessions;
  waiting: Waiting;
  metrics: ToolCallMetrics;
}

export function toolCallRoutes(app: HttpServer, { config, sessions, waiting, metrics }: RouteDeps): void {
  parsePlainJson(app);

  app.post(
    "/sessions",
    { schema: { body: openToolSessionSchema } },
    async (request): Promise<ToolSession> => {
      const callback_token = await sessions.open(request.body);
      return { success: true, execution_id: request.body.execution_id, callback_token };
    },
  );

  app.delete("/sessions/:id", async (request) => {
    await sessions.close(executionOf(request));
    return { success: true };
  });

  app.get("/sessions/:id/pending", async (request, reply) => {
    const { wait_ms = 0, call_ids = [] } = parseOrRefuse(pendingQuerySchema, request.query);
    const listing = await waiting.pending(executionOf(request), call_ids, wait_ms, leaving(reply));
    const status = listing.undeclared === undefined ? "active" : "unregistered_tool";
    const head = JSON.stringify({ status, unregistered_tool: listing.undeclared }).slice(0, -1);
    return reply.type(JSON_TYPE).send(`${head},"pending_calls":[${listing.calls.join(",")}]}`);
  });

  app.post(
    "/sessions/:id/results",
    { schema: { body: toolResultsSchema } },
    async (request): Promise<ProcessedResults> => {
      const execution = executionOf(request);
      const { processed, all } = await sessions.answer(execution, request.body);
      if (all !== undefined) waiting.answered(execution, all);
      return { success: true, processed };
    },
  );

  app.post(
    "/tool-call",
    { bodyLimit: config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES, schema: { body: toolCallSchema } },
    async (request, reply) => {
      const { call, token } = callOf(request);
      const { tool_name, input } = request.body;
      const record = async () => {
        const state = await sessions.call(call, token, tool_name, input);
        if (state.isNew) metrics.calls.inc();
        return state;
      };
      if (request.headers[TOOL_CALL_WAIT_HEADER] === "no") {
        const text = await waiting.recorded(call, record, leaving(reply));
        if (text === undefined) reply.code(202);
        return reply.type(JSON_TYPE).send(text ?? '{"success":true}');
      }
      const text = await waiting.result(call, record, leaving(reply)).catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === "tool_call_timeout") metrics.timeouts.inc();
        throw error;
      });
      return reply.type(JSON_TYPE).send(text);
    },
  );
}

function executionOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (!isId(id)) throw new ServiceError("invalid_id");
  return id;
}

function callOf({ headers }: FastifyRequest): { call: Call; token: string } {
  const [execution, id, token] = [EXECUTION_ID_HEADER, TOOL_CALL_ID_HEADER, CALLBACK_TOKEN_HEADER].map(
    (name) => headers[name],
  );
  if (typeof execution !== "string" || typeof id !== "string" || typeof token !== "string") {
    throw new ServiceError("missing_headers");
  }
  if (!isId(execution)) throw new ServiceError("invalid_id");
  if (!TOOL_CALL_ID_PATTERN.test(id)) throw new ServiceError("invalid_id", "The tool call id is not valid.");
  return { call: { execution, id }, token };
}

/** Aborts when the client goes before it has its answer. */
function leaving(reply: FastifyReply): AbortController {
  const left = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) left.abort(new ServiceError("internal_error", "The client left."));
  });
  return left;
}
