/** The routes for the caller's jobs: get one, read its events, list all, cancel or remove one. */
import {
  errorBody,
  type JobResult,
  jobIdSchema,
  jobListSchema,
  keptJobSchema,
  MAX_JOB_WAIT_MS,
  type Principal,
  type PublicJob,
} from "@svc/contracts";
import { type EventFeed, hasEnded, type KeptJob, type ListPage } from "@svc/job-queue";
import {
  clientGone,
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  invalidRequest,
} from "@svc/service-kit";
import { z } from "zod";
import { answerOf } from "../exec/answer.ts";
import { OpenWaits } from "../limits/open-waits.ts";
import { eventsAnswer } from "../streams/documented.ts";
import { RunStream } from "../streams/run-stream.ts";
import type { Jobs } from "./jobs.ts";

export interface JobRoutesDeps {
  jobs: Jobs;
  feed: EventFeed;
  principalOf: (request: FastifyRequest) => Principal;
}

const waitSchema = z.object({
  wait_ms: z
    .string()
    .optional()
    .meta({ description: "Wait so long for the end of the job, in ms; at most 30000.", example: "10000" }),
});
const cursorSchema = z.object({
  cursor: z
    .string()
    .optional()
    .meta({ description: "`next_cursor` of the page before.", example: "MTc2NDE1LkE" }),
});

export function jobRoutes(app: HttpServer, deps: JobRoutesDeps): void {
  const { jobs, principalOf } = deps;
  const waits = new OpenWaits();
  app.get(
    "/v1/jobs/:id",
    {
      schema: {
        tags: ["jobs"],
        summary: "A job, and how it ended",
        operationId: "getJob",
        params: jobIdSchema,
        querystring: waitSchema,
        response: { 200: keptJobSchema },
      },
    },
    async (request, reply) => {
      const left = clientGone(reply, new Error("the client closed the connection"));
      const ms = waitOf(request.query.wait_ms);
      const { id } = request.params;
      const principal = principalOf(request);
      return shown(
        ms === 0
          ? await jobs.find(principal, id)
          : await waits.during(principal, () => jobs.afterEnd(principal, id, ms, left)),
      );
    },
  );
  app.get(
    "/v1/jobs/:id/events",
    {
      schema: {
        tags: ["jobs"],
        summary: "The events of a job from its beginning",
        operationId: "jobEvents",
        params: jobIdSchema,
        response: { 200: eventsAnswer("The events, until the job has ended.") },
      },
    },
    (request, reply) =>
      waits.during(principalOf(request), () => events(request, reply, request.params.id, deps)) as never,
  );
  app.get(
    "/v1/jobs",
    {
      schema: {
        tags: ["jobs"],
        summary: "List the caller's jobs",
        operationId: "listJobs",
        querystring: cursorSchema,
        response: { 200: jobListSchema },
      },
    },
    async (request) => {
      const { jobs: found, next } = await jobs.list(principalOf(request), placeOf(request.query.cursor));
      return { jobs: found.map(summary), ...(next === undefined ? {} : { next_cursor: cursorOf(next) }) };
    },
  );
  app.delete(
    "/v1/jobs/:id",
    {
      schema: {
        tags: ["jobs"],
        summary: "Cancel a job, or remove one that has ended",
        operationId: "deleteJob",
        params: jobIdSchema,
        response: {
          202: z.undefined().describe("The job waits or runs, and ends now."),
          204: z.undefined().describe("The job had ended, and is gone."),
        },
      },
    },
    async (request, reply) => {
      const done = await jobs.cancel(principalOf(request), request.params.id);
      return reply.code(done === "ends" ? 202 : 204).send();
    },
  );
}

async function events(
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  { jobs, feed, principalOf }: JobRoutesDeps,
): Promise<FastifyReply> {
  const principal = principalOf(request);
  await jobs.find(principal, id);
  const stream = new RunStream(request, reply, feed);
  stream.open();
  try {
    await stream.follow(id, { isKept: true });
    const { end } = await jobs.afterEnd(principal, id, Number.POSITIVE_INFINITY, stream.closed);
    if (end !== undefined) await stream.end(answerOf(end));
    else await stream.abandon();
  } catch (error) {
    await stream.fail(error);
  }
  return reply;
}

const iso = (ms: number) => new Date(ms).toISOString();

function summary({ id, status, language, created_at, started_at, ended_at }: KeptJob) {
  return {
    job_id: id,
    status,
    language,
    created_at: iso(created_at),
    ...(started_at === undefined ? {} : { started_at: iso(started_at) }),
    ...(ended_at === undefined ? {} : { ended_at: iso(ended_at) }),
  };
}

function shown(job: KeptJob): PublicJob {
  return {
    ...summary(job),
    ...(job.end && hasEnded(job) ? endOf(job.end, job.request_id) : {}),
  } as PublicJob;
}

function endOf(end: JobResult, requestId: string): object {
  if (end.ok) return { result: end.answer };
  try {
    return answerOf(end);
  } catch (error) {
    return { error: errorBody(error as Parameters<typeof errorBody>[0], requestId) };
  }
}

function waitOf(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^\d+$/.test(text))
    throw invalidRequest([{ path: "wait_ms", problem: "must be a number of milliseconds" }]);
  return Math.min(Number(text), MAX_JOB_WAIT_MS);
}

const cursorOf = ({ createdAt, id }: NonNullable<ListPage["next"]>) =>
  Buffer.from(`${createdAt}.${id}`).toString("base64url");

function placeOf(cursor: string | undefined): ListPage["next"] {
  if (cursor === undefined) return undefined;
  const [, createdAt, id] =
    /^(\d{1,15})\.([\w-]{21})$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (createdAt === undefined || id === undefined)
    throw invalidRequest([{ path: "cursor", problem: "must be the next_cursor of a list" }]);
  return { createdAt: Number(createdAt), id };
}
