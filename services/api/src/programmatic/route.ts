/**
 * POST /v1/exec/programmatic, starts and resumes, and the cancel route: parse, authorise, make the round, answer. A client
 * that leaves cancels its start; a resume goes on without it, and its answer is kept for the next one that asks.
 */
import { randomInt } from "node:crypto";
import {
  brokenExecutionSchema,
  cancelRequestSchema,
  cancelResponseSchema,
  errorBodySchema,
  namespaceOf,
  newId,
  type Principal,
  type ProgrammaticResponse,
  programmaticRequestSchema,
  programmaticResponseSchema,
  ServiceError,
} from "@svc/contracts";
import {
  bodyBytes,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  sendError,
  toServiceError,
} from "@svc/service-kit";
import { clientLeft, permanentRefusal } from "../exec/client.ts";
import { authoriseRefs } from "../exec/refs.ts";
import { checkProfile } from "../exec/request.ts";
import { execRules, startLimit } from "../exec/rules.ts";
import type { ProgrammaticDeps } from "./deps.ts";
import { answerKey } from "./earlier-answers.ts";
import { programBytes } from "./ends.ts";
import type { ResumeOutcome } from "./metrics.ts";
import type { Program } from "./program.ts";
import { parseCancel, parseResume, parseStart, tokenOf } from "./request.ts";
import type { Mode } from "./taking.ts";

export const PROGRAMMATIC_ROUTE = "/v1/exec/programmatic";
const LABEL_HEADER = "x-librechat-code-request-id";
const MAX_LABEL_CHARS = 128;
const HASH_SEEDS = 2 ** 32;
/** A resume goes on without its client. */
const NEVER = new AbortController().signal;

const errors = Object.fromEntries(
  [400, 401, 403, 409, 422, 429, 500, 502, 503, 504].map((status) => [
    status,
    status > 500 ? brokenExecutionSchema : errorBodySchema,
  ]),
);

export function programmaticRoutes(app: HttpServer, deps: ProgrammaticDeps): void {
  const common = {
    // Parsed in request.ts, which knows the rules that go beyond the shape.
    validatorCompiler: () => (value: unknown) => ({ value }),
    errorHandler: async (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      sendError(request, reply, permanentRefusal(toServiceError(error))),
  };
  app.post(
    PROGRAMMATIC_ROUTE,
    {
      ...common,
      config: { scopeOfBody: (body) => (tokenOf(body) === undefined ? "executions" : "resumes") },
      schema: {
        summary: "Run a program that calls tools, or answer its calls",
        operationId: "execProgrammatic",
        tags: ["execution"],
        body: programmaticRequestSchema,
        response: { 200: programmaticResponseSchema, ...errors },
      },
    },
    (request, reply) =>
      tokenOf(request.body) === undefined ? start(request, reply, deps) : resume(request, deps),
  );
  app.post(
    `${PROGRAMMATIC_ROUTE}/cancel`,
    {
      ...common,
      schema: {
        summary: "Cancel programs by the request id they were started with",
        operationId: "cancelProgrammatic",
        tags: ["execution"],
        body: cancelRequestSchema,
        response: { 200: cancelResponseSchema, ...errors },
      },
    },
    async (request) => ({
      status: "cancelled" as const,
      cancelled: await deps.cancels.byLabel(deps.principalOf(request), parseCancel(request.body), request.id),
    }),
  );
}

async function start(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: ProgrammaticDeps,
): Promise<ProgrammaticResponse> {
  const { config, rounds, cancels, running, principalOf, holdingSlot } = deps;
  const principal = principalOf(request);
  if (bodyBytes(request) > startLimit(config)) throw new ServiceError("request_too_large");
  checkProfile(request.headers);
  const program = await programOf(request, principal, deps);
  if (programBytes(program) > config.PTC_MAX_STATE_BYTES) {
    deps.metrics.oversize.inc({ kind: "state" });
    throw new ServiceError("state_too_large");
  }
  const { execution_id, label } = program;
  let unwanted = clientLeft(reply);
  let paused = false;
  try {
    // From here on a cancellation reaches it: it is known by its label only when it can be stopped.
    const answer = await running.during(execution_id, async (cancelled) => {
      if (label !== undefined) await cancels.remember(principal, label, execution_id);
      unwanted = AbortSignal.any([unwanted, cancelled]);
      return holdingSlot(request, () => rounds.start(program, request.id, unwanted));
    });
    paused = answer.status === "tool_call_required";
    if (paused && unwanted.aborted) await cancels.one(execution_id, request.id);
    unwanted.throwIfAborted();
    return answer;
  } finally {
    if (label !== undefined && !paused) cancels.forget(principal, label, execution_id);
  }
}

async function programOf(
  request: FastifyRequest,
  principal: Principal,
  deps: ProgrammaticDeps,
): Promise<Program> {
  const { config, runtimes } = deps;
  const parsed = parseStart(request.body, {
    ...execRules(config, await runtimes.get()),
    maxTools: config.PTC_MAX_TOOLS,
  });
  if (parsed.files.length > 0) {
    authoriseRefs(parsed.files, await deps.lookupRecords(parsed.files, request.id), principal);
  }
  const label = labelOf(request.headers);
  const { run_memory_limit } = deps.planLimitsOf(request);
  return {
    v: 1,
    execution_id: newId(),
    session_id: newId(),
    principal,
    output_namespace: namespaceOf(principal, { kind: "user" }),
    hash_seed: randomInt(HASH_SEEDS),
    ...parsed,
    ...(run_memory_limit === undefined ? {} : { run_memory_limit }),
    ...(label === undefined ? {} : { label }),
  };
}

function labelOf(headers: Record<string, unknown>): string | undefined {
  const label = headers[LABEL_HEADER];
  return typeof label === "string" && label !== "" ? label.slice(0, MAX_LABEL_CHARS) : undefined;
}

async function resume(request: FastifyRequest, deps: ProgrammaticDeps): Promise<ProgrammaticResponse> {
  let mode: Mode = deps.config.PTC_MODE;
  const count = (outcome: ResumeOutcome) => deps.metrics.continuations.inc({ mode, outcome });
  try {
    const answer = await goOn(request, deps, (chosen) => {
      mode = chosen;
    });
    count(answer.status === "tool_call_required" ? "paused" : answer.status);
    return answer;
  } catch (error) {
    const { status } = toServiceError(error);
    count(status < 500 ? "client_error" : "retryable_error");
    throw error;
  }
}

async function goOn(
  request: FastifyRequest,
  deps: ProgrammaticDeps,
  onMode: (mode: Mode) => void,
): Promise<ProgrammaticResponse> {
  const { rounds, running, once, earlierAnswers, tokens, cancels, holdingSlot } = deps;
  const principal = deps.principalOf(request);
  const { token, results } = parseResume(request.body);
  const continuation = tokens.open(token, principal);
  const { executionId, round } = continuation;
  // Clients give every request a label of its own, and cancel by that of the one they gave up.
  const label = labelOf(request.headers);
  if (label !== undefined) await cancels.remember(principal, label, executionId);
  const taking = rounds.taking(continuation, results);
  const asked = {
    store: answerKey(executionId, round),
    body: taking.digest,
    left: NEVER,
    take: taking.begin.bind(taking),
  };
  // From here on a cancellation reaches it.
  const { answer } = await running.during(executionId, (cancelled) =>
    once.run(asked, ({ entry }) =>
      holdingSlot(request, () => rounds.resume(taking, entry, { requestId: request.id, cancelled, onMode })),
    ),
  );
  earlierAnswers.renew(continuation, Date.now());
  if (label !== undefined) cancels.forget(principal, label, executionId);
  return answer as ProgrammaticResponse;
}
