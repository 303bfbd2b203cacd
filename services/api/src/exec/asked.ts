/** Turns a request to run a program into a job, whether its caller waits or not: parses the request and authorises its files. */
import {
  execRequestSchema,
  type Job,
  type JobFile,
  namespaceOf,
  newId,
  type ObjectRecord,
  type Principal,
} from "@svc/contracts";
import type { EventFeed, JobProducer } from "@svc/job-queue";
import type { Config, Counter, FastifyReply, FastifyRequest, PlanLimits } from "@svc/service-kit";
import type { SessionStore } from "@svc/session-store";
import type { Jobs } from "../jobs/jobs.ts";
import type { HoldingSeat } from "../limits/seats.ts";
import { noteRun, noteUser } from "../request-log.ts";
import { traceOf } from "../tracing.ts";
import { type Idempotency, idempotencyKey } from "./idempotency.ts";
import { tellIgnoredFields } from "./ignored-fields.ts";
import { authoriseRefs } from "./refs.ts";
import { type ParsedExec, parseExec } from "./request.ts";
import { execRules } from "./rules.ts";
import type { KnownRuntimes } from "./runtimes.ts";
import { sessionOf } from "./session.ts";

export interface ExecDeps {
  config: Config;
  jobs: JobProducer;
  feed: EventFeed;
  /** Jobs that no caller waits for. */
  kept: Jobs;
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

export interface Asked extends ParsedExec, Pick<Job, "session"> {
  principal: Principal;
  /** Idempotency-Key. */
  key: string | undefined;
}

export async function askedOf(request: FastifyRequest, reply: FastifyReply, deps: ExecDeps): Promise<Asked> {
  const principal = deps.principalOf(request);
  tellIgnoredFields(reply, request.body, KNOWN_FIELDS);
  noteUser(request);
  const key = idempotencyKey(request.headers);
  const parsed = parseExec(request.body, execRules(deps.config, await deps.runtimes.get()));
  const session = await sessionOf(request.body, principal, deps.sessions);
  noteRun(request, { language: parsed.language });
  return { ...parsed, session, principal, key };
}

export async function jobFor(request: FastifyRequest, asked: Asked, deps: ExecDeps): Promise<Job> {
  const { principal, key: _, ...parsed } = asked;
  const files =
    parsed.files.length > 0
      ? authoriseRefs(parsed, await deps.lookupRecords(parsed.files, request.id), principal)
      : [];
  deps.submitted.inc({ language: parsed.language });
  const job = jobOf({ ...parsed, files }, principal, deps.planLimitsOf(request), request.id);
  const trace = traceOf(request)?.context;
  if (trace !== undefined) job.trace = trace;
  noteRun(request, { exec_id: job.execution_id });
  return job;
}

function jobOf(
  { session, ...parsed }: ParsedExec & Pick<Job, "session">,
  principal: Principal,
  { run_memory_limit }: PlanLimits,
  requestId: string,
): Job {
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
  };
}
