/** POST /v1/exec: parse, authorise the files, run through the queue, answer. A client that leaves cancels its run. */
import {
  type ExecResponse,
  errorBodySchema,
  execRequestSchema,
  execResponseSchema,
  type Job,
  type JobFile,
  type JobResult,
  namespaceOf,
  newId,
  type ObjectRecord,
  type Principal,
  ServiceError,
} from "@svc/contracts";
import {
  type Config,
  type Counter,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  knownErrorCode,
  type PlanLimits,
  sendError,
  toServiceError,
} from "@svc/service-kit";
import type { HoldingSlot } from "../limits/hook.ts";
import { type HasWaiters, type Idempotency, idempotencyKey } from "./idempotency.ts";
import type { Jobs } from "./jobs.ts";
import { authoriseRefs } from "./refs.ts";
import { checkProfile, type ParsedExec, parseExec } from "./request.ts";
import type { KnownRuntimes } from "./runtimes.ts";

export interface ExecDeps {
  config: Config;
  jobs: Jobs;
  idempotency: Idempotency;
  runtimes: KnownRuntimes;
  submitted: Counter<"language">;
  principalOf: (request: FastifyRequest) => Principal;
  planLimitsOf: (request: FastifyRequest) => PlanLimits;
  lookupRecords: (files: readonly JobFile[], requestId: string) => Promise<(ObjectRecord | undefined)[]>;
  holdingSlot: HoldingSlot;
}

const errors = Object.fromEntries(
  [400, 401, 403, 422, 429, 500, 502, 503, 504].map((status) => [status, errorBodySchema]),
);

export function execRoute(app: HttpServer, deps: ExecDeps): void {
  app.post(
    "/v1/exec",
    {
      schema: {
        summary: "Run a program",
        operationId: "exec",
        tags: ["execution"],
        body: execRequestSchema,
        response: { 200: execResponseSchema, ...errors },
      },
      // Parsed by parseExec, which knows the rules that go beyond the shape.
      validatorCompiler: () => (value) => ({ value }),
      errorHandler: (error, request, reply) =>
        sendError(request, reply, permanentRefusal(toServiceError(error))),
    },
    (request, reply) => handle(request, reply, deps) as Promise<ExecResponse>,
  );
}

/** Clients read 413 here as "try again": a body that is too large is a 422. */
function permanentRefusal(error: ServiceError): ServiceError {
  return error.code === "request_too_large"
    ? new ServiceError(error.code, error.message, { status: 422 })
    : error;
}

async function handle(request: FastifyRequest, reply: FastifyReply, deps: ExecDeps): Promise<unknown> {
  const principal = deps.principalOf(request);
  checkProfile(request.headers);
  const key = idempotencyKey(request.headers);
  const left = clientLeft(reply);
  const parsed = await parse(request.body, deps);
  if (key === undefined) return execute(request, parsed, principal, left, deps);
  const outcome = await deps.idempotency.once(principal, key, request.body, left, (hasWaiters) =>
    execute(request, parsed, principal, leftAlone(left, hasWaiters), deps),
  );
  if (outcome.replayed) reply.header("idempotency-replayed", "true");
  return outcome.answer;
}

/** Aborted when the connection closes before the answer is written. */
function clientLeft(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) controller.abort(new ServiceError("execution_cancelled"));
  });
  return controller.signal;
}

/** Like `left`, but only once nobody else waits for the same answer. */
function leftAlone(left: AbortSignal, hasWaiters: HasWaiters): AbortSignal {
  const controller = new AbortController();
  const check = () => {
    hasWaiters().then(
      (waiting) => (waiting ? setTimeout(check, 1000) : controller.abort(left.reason)),
      () => controller.abort(left.reason),
    );
  };
  if (left.aborted) check();
  else left.addEventListener("abort", check, { once: true });
  return controller.signal;
}

async function parse(body: unknown, { config, runtimes }: ExecDeps): Promise<ParsedExec> {
  return parseExec(body, {
    defaultRunMs: config.SANDBOX_RUN_TIMEOUT,
    maxRunMs: config.MAX_RUN_TIMEOUT,
    maxFiles: config.SANDBOX_MAX_INPUT_FILES,
    names: { maxLength: config.SANDBOX_MAX_PATH_LENGTH, maxDepth: config.SANDBOX_MAX_NESTING_DEPTH },
    runtimes: await runtimes.get(),
  });
}

async function execute(
  request: FastifyRequest,
  parsed: ParsedExec,
  principal: Principal,
  left: AbortSignal,
  deps: ExecDeps,
): Promise<Record<string, unknown>> {
  if (parsed.files.length > 0) {
    authoriseRefs(parsed.files, await deps.lookupRecords(parsed.files, request.id), principal);
  }
  deps.submitted.inc({ language: parsed.language });
  const job = jobOf(parsed, principal, deps.planLimitsOf(request), request.id);
  return answerOf(await deps.holdingSlot(request, () => deps.jobs.run(job, left)));
}

function jobOf(
  parsed: ParsedExec,
  principal: Principal,
  { run_memory_limit }: PlanLimits,
  requestId: string,
): Omit<Job, "reply_to"> {
  return {
    ...parsed,
    ...(run_memory_limit === undefined ? {} : { run_memory_limit }),
    v: 1,
    request_id: requestId,
    execution_id: newId(),
    session_id: newId(),
    principal,
    output_namespace: namespaceOf(principal, { kind: "user" }),
    enqueued_at: Date.now(),
  };
}

function answerOf(result: JobResult): Record<string, unknown> {
  if (result.ok) return result.answer;
  const { code, status, message, details } = result.error;
  throw new ServiceError(knownErrorCode(code), message, {
    status,
    ...(details === undefined ? {} : { details }),
    ...(status === 503 ? { headers: { "retry-after": "2" } } : {}),
  });
}
