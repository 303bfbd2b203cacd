/** POST /v1/exec: parses, authorises the files, runs the job through the queue, answers. A client that disconnects cancels its run. */
import {
  createdJobSchema,
  type ExecResponse,
  execRequestSchema,
  execResponseSchema,
  factsOfAnswer,
} from "@svc/contracts";
import { jobIdOf } from "@svc/job-queue";
import {
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  sendError,
  toServiceError,
} from "@svc/service-kit";
import { prefersJob } from "../jobs/prefer.ts";
import type { HasWaiters } from "../once/once.ts";
import { noteRun } from "../request-log.ts";
import { type Answered, answerRun } from "../streams/answer.ts";
import { runAnswer } from "../streams/documented.ts";
import type { RunStream } from "../streams/run-stream.ts";
import { answerOf } from "./answer.ts";
import { type Asked, askedOf, type ExecDeps, jobFor } from "./asked.ts";
import { clientLeft, permanentRefusal } from "./client.ts";
import { startLimit } from "./rules.ts";
import { startJob } from "./start-job.ts";

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
        response: { 200: runAnswer(execResponseSchema), 202: createdJobSchema },
      },
      // parseExec validates the body: its rules go beyond the schema.
      validatorCompiler: () => (value) => ({ value }),
      errorHandler: (error, request, reply) =>
        sendError(request, reply, permanentRefusal(toServiceError(error, request))),
    },
    (request, reply) => {
      if (prefersJob(request.headers.prefer))
        return startJob(request, reply, deps) as unknown as Promise<ExecResponse>;
      return answerRun(request, reply, deps.feed, (stream) =>
        handle(request, reply, stream, deps),
      ) as Promise<ExecResponse>;
    },
  );
}

async function handle(
  request: FastifyRequest,
  reply: FastifyReply,
  stream: RunStream | undefined,
  deps: ExecDeps,
): Promise<Answered> {
  const left = clientLeft(reply);
  const asked = await askedOf(request, reply, deps);
  const { principal, key } = asked;
  if (key === undefined)
    return { answer: await execute(request, asked, stream, left, deps), replayed: false };
  const outcome = await deps.idempotency.once(principal, key, request.body, left, (hasWaiters) =>
    execute(request, asked, stream, leftAlone(left, hasWaiters), deps),
  );
  if (outcome.replayed) {
    reply.header("idempotency-replayed", "true");
    noteRun(request, { replayed: true, outcome: factsOfAnswer(Object(outcome.answer)).outcome });
  }
  return outcome;
}

/** Like `left`, but aborted only when no other request waits for the same answer. */
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
  asked: Asked,
  stream: RunStream | undefined,
  left: AbortSignal,
  deps: ExecDeps,
): Promise<Record<string, unknown>> {
  const job = await jobFor(request, asked, deps);
  if (stream !== undefined) {
    job.events = true;
    await stream.follow(jobIdOf(job));
  }
  const answer = answerOf(await deps.holdingSeat(request, (place) => deps.jobs.run(job, left, place)));
  noteRun(request, factsOfAnswer(answer));
  return answer;
}
