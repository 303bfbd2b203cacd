/** POST /v1/exec: parse, authorise the files, run through the queue, answer. A client that leaves cancels its run. */
import {
  type ExecResponse,
  execRequestSchema,
  execResponseSchema,
  factsOfAnswer,
  type Job,
  type JobFile,
  namespaceOf,
  newId,
  type ObjectRecord,
  type Principal,
} from "@svc/contracts";
import { type EventFeed, type JobProducer, jobIdOf, type UnsentJob } from "@svc/job-queue";
import {
  type Config,
  type Counter,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  type PlanLimits,
  sendError,
  toServiceError,
} from "@svc/service-kit";
import type { SessionStore } from "@svc/session-store";
import type { HoldingSeat } from "../limits/seats.ts";
import type { HasWaiters } from "../once/once.ts";
import { noteRun, noteUser } from "../request-log.ts";
import { type Answered, answerRun } from "../streams/answer.ts";
import type { RunStream } from "../streams/run-stream.ts";
import { traceOf } from "../tracing.ts";
import { answerOf } from "./answer.ts";
import { clientLeft, permanentRefusal } from "./client.ts";
import { type Idempotency, idempotencyKey } from "./idempotency.ts";
import { tellIgnoredFields } from "./ignored-fields.ts";
import { authoriseRefs } from "./refs.ts";
import { type ParsedExec, parseExec } from "./request.ts";
import { execRules, startLimit } from "./rules.ts";
import type { KnownRuntimes } from "./runtimes.ts";
import { sessionOf } from "./session.ts";

export interface ExecDeps {
  config: Config;
  jobs: JobProducer;
  feed: EventFeed;
  idempotency: Idempotency;
  runtimes: KnownRuntimes;
  submitted: Counter<"language">;
  principalOf: (request: FastifyRequest) => Principal;
  planLimitsOf: (request: FastifyRequest) => PlanLimits;
  lookupRecords: (files: readonly JobFile[], requestId: string) => Promise<(ObjectRecord | undefined)[]>;
  holdingSeat: HoldingSeat;
  /** Undefined: sessions are not kept. */
  sessions: SessionStore | undefined;
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set(Object.keys(execRequestSchema.shape));

export function execRoute(app: HttpServer, deps: ExecDeps): void {
  app.post(
    "/v1/exec",
    {
      bodyLimit: startLimit(deps.config),
      schema: {
        summary: "Run a program",
        operationId: "exec",
        tags: ["execution"],
        body: execRequestSchema,
        response: { 200: execResponseSchema },
      },
      // Parsed by parseExec, which knows the rules that go beyond the shape.
      validatorCompiler: () => (value) => ({ value }),
      errorHandler: (error, request, reply) =>
        sendError(request, reply, permanentRefusal(toServiceError(error, request))),
    },
    (request, reply) =>
      answerRun(request, reply, deps.feed, (stream) =>
        handle(request, reply, stream, deps),
      ) as Promise<ExecResponse>,
  );
}

async function handle(
  request: FastifyRequest,
  reply: FastifyReply,
  stream: RunStream | undefined,
  deps: ExecDeps,
): Promise<Answered> {
  const principal = deps.principalOf(request);
  tellIgnoredFields(reply, request.body, KNOWN_FIELDS);
  noteUser(request);
  const key = idempotencyKey(request.headers);
  const left = clientLeft(reply);
  const parsed = parseExec(request.body, execRules(deps.config, await deps.runtimes.get()));
  const session = await sessionOf(request.body, principal, deps.sessions);
  noteRun(request, { language: parsed.language });
  const asked = { ...parsed, session, stream };
  if (key === undefined)
    return { answer: await execute(request, asked, principal, left, deps), replayed: false };
  const outcome = await deps.idempotency.once(principal, key, request.body, left, (hasWaiters) =>
    execute(request, asked, principal, leftAlone(left, hasWaiters), deps),
  );
  if (outcome.replayed) {
    reply.header("idempotency-replayed", "true");
    noteRun(request, { replayed: true, outcome: factsOfAnswer(Object(outcome.answer)).outcome });
  }
  return outcome;
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

async function execute(
  request: FastifyRequest,
  { stream, ...parsed }: ParsedExec & Pick<Job, "session"> & { stream: RunStream | undefined },
  principal: Principal,
  left: AbortSignal,
  deps: ExecDeps,
): Promise<Record<string, unknown>> {
  const files =
    parsed.files.length > 0
      ? authoriseRefs(parsed, await deps.lookupRecords(parsed.files, request.id), principal)
      : [];
  deps.submitted.inc({ language: parsed.language });
  const job = jobOf({ ...parsed, files }, principal, deps.planLimitsOf(request), request.id);
  const trace = traceOf(request)?.context;
  if (trace !== undefined) job.trace = trace;
  noteRun(request, { exec_id: job.execution_id });
  if (stream !== undefined) {
    job.events = true;
    await stream.follow(jobIdOf(job), job.session_id);
  }
  const answer = answerOf(await deps.holdingSeat(request, (place) => deps.jobs.run(job, left, place)));
  noteRun(request, factsOfAnswer(answer));
  return answer;
}

function jobOf(
  { session, ...parsed }: ParsedExec & Pick<Job, "session">,
  principal: Principal,
  { run_memory_limit }: PlanLimits,
  requestId: string,
): UnsentJob {
  return {
    ...parsed,
    ...(session === undefined ? {} : { session }),
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
