/**
 * The routes of exchanges and tool calls: parse, call, reply. Routes of exchanges require the API's internal token, routes of calls the
 * gateway's.
 */
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  isId,
  openToolExchangeSchema,
  type ProcessedResults,
  pendingQuerySchema,
  type RecordedToolCalls,
  recordToolCallsSchema,
  ServiceError,
  TOOL_CALL_ID_HEADER,
  TOOL_CALL_ID_PATTERN,
  type ToolExchange,
  toolCallSchema,
  toolResultsSchema,
} from "@svc/contracts";
import {
  type Component,
  type Config,
  clientGone,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  parseOrRefuse,
  requireInternalToken,
  tokensFrom,
} from "@svc/service-kit";
import type { Exchanges, MadeCall } from "./exchanges.ts";
import { parsePlainJson } from "./json.ts";
import type { LongPolls } from "./long-poll.ts";
import type { ToolCallMetrics } from "./metrics.ts";

const JSON_TYPE = "application/json; charset=utf-8";

export interface RouteDeps {
  config: Config;
  exchanges: Exchanges;
  polls: LongPolls;
  metrics: ToolCallMetrics;
}

export function toolCallRoutes(app: HttpServer, deps: RouteDeps): void {
  parsePlainJson(app);
  const openTo = (caller: Component, routes: typeof callRoutes) =>
    app.register(async (own) => {
      own.addHook("onRequest", requireInternalToken(tokensFrom(deps.config, "tool-call-server", [caller])));
      routes(own, deps);
    });
  openTo("api", exchangeRoutes);
  openTo("egress-gateway", callRoutes);
}

/** The API's side: exchanges, pending calls, results. */
function exchangeRoutes(app: HttpServer, { exchanges, polls }: RouteDeps): void {
  app.post(
    "/sessions",
    { schema: { body: openToolExchangeSchema } },
    async (request): Promise<ToolExchange> => {
      const callback_token = await exchanges.open(request.body);
      return { success: true, execution_id: request.body.execution_id, callback_token };
    },
  );

  app.delete("/sessions/:id", async (request) => {
    await exchanges.close(executionOf(request));
    return { success: true };
  });

  app.get("/sessions/:id/pending", async (request, reply) => {
    const { wait_ms = 0, call_ids = [] } = parseOrRefuse(pendingQuerySchema, request.query);
    const listing = await polls.pending(executionOf(request), call_ids, wait_ms, leaving(reply));
    const status = listing.undeclared === undefined ? "active" : "unregistered_tool";
    const head = JSON.stringify({ status, unregistered_tool: listing.undeclared }).slice(0, -1);
    return reply.type(JSON_TYPE).send(`${head},"pending_calls":[${listing.calls.join(",")}]}`);
  });

  app.post(
    "/sessions/:id/results",
    { schema: { body: toolResultsSchema } },
    async (request): Promise<ProcessedResults> => {
      const execution = executionOf(request);
      const { processed, all } = await exchanges.answer(execution, request.body);
      if (all !== undefined) polls.answered(execution, all);
      return { success: true, processed };
    },
  );
}

/** The programs' side, through the gateway. */
function callRoutes(app: HttpServer, { config, exchanges, polls, metrics }: RouteDeps): void {
  const record = async (...made: Parameters<Exchanges["record"]>) => {
    const state = await exchanges.record(...made);
    metrics.calls.inc(state.fresh);
    return state;
  };

  app.post(
    "/tool-call",
    { bodyLimit: config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES, schema: { body: toolCallSchema } },
    async (request, reply) => {
      const { execution, token } = callerOf(request);
      const id = callIdOf(request);
      const { tool_name: tool, input } = request.body;
      const call = () => record(execution, token, [{ id, tool, input }]);
      const text = await polls.result({ execution, id }, call, leaving(reply)).catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === "tool_call_timeout") metrics.timeouts.inc();
        throw error;
      });
      return reply.type(JSON_TYPE).send(text);
    },
  );

  app.post(
    "/tool-calls",
    { bodyLimit: config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES, schema: { body: recordToolCallsSchema } },
    async (request, reply): Promise<RecordedToolCalls> => {
      const { execution, token } = callerOf(request);
      const calls = request.body.calls.map(({ call_id: id, call: { tool_name: tool, input } }) => ({
        id,
        tool,
        input,
      }));
      const [{ id }] = calls as [MadeCall];
      await polls.recorded({ execution, id }, () => record(execution, token, calls), leaving(reply));
      return { success: true };
    },
  );
}

function executionOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (!isId(id)) throw new ServiceError("invalid_id");
  return id;
}

function callerOf({ headers }: FastifyRequest): { execution: string; token: string } {
  const [execution, token] = [EXECUTION_ID_HEADER, CALLBACK_TOKEN_HEADER].map((name) => headers[name]);
  if (typeof execution !== "string" || typeof token !== "string") throw new ServiceError("missing_headers");
  if (!isId(execution)) throw new ServiceError("invalid_id");
  return { execution, token };
}

function callIdOf({ headers }: FastifyRequest): string {
  const id = headers[TOOL_CALL_ID_HEADER];
  if (typeof id !== "string") throw new ServiceError("missing_headers");
  if (!TOOL_CALL_ID_PATTERN.test(id)) throw new ServiceError("invalid_id", "The tool call id is not valid.");
  return id;
}

/** Aborts when the client goes before it has its answer. */
function leaving(reply: FastifyReply): AbortController {
  const left = new AbortController();
  const gone = clientGone(reply, new ServiceError("internal_error", "The client left."));
  const leave = () => left.abort(gone.reason);
  if (gone.aborted) leave();
  else gone.addEventListener("abort", leave);
  return left;
}
