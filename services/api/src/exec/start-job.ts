/** POST /v1/exec with `Prefer: respond-async`: queues the program and answers at once. The caller polls for the result later. */
import type { CreatedJob } from "@svc/contracts";
import { type FastifyReply, type FastifyRequest, invalidRequest } from "@svc/service-kit";
import { wantsEvents } from "../accept.ts";
import { type Asked, askedOf, type ExecDeps, jobFor } from "./asked.ts";
import { clientLeft } from "./client.ts";

const WITH_EVENTS =
  "respond-async is not for an answer with events; read those of the job, GET /v1/jobs/:id/events";

export async function startJob(
  request: FastifyRequest,
  reply: FastifyReply,
  deps: ExecDeps,
): Promise<CreatedJob> {
  if (wantsEvents(request.headers.accept)) throw invalidRequest([{ path: "Prefer", problem: WITH_EVENTS }]);
  const asked = await askedOf(request, reply, deps);
  const created = await createOnce(request, reply, asked, deps);
  reply.code(202).headers({ location: `/v1/jobs/${created.job_id}`, "preference-applied": "respond-async" });
  return created;
}

/** The same key and body make one job. The key cannot be shared with a request that waits for its answer. */
async function createOnce(
  request: FastifyRequest,
  reply: FastifyReply,
  asked: Asked,
  deps: ExecDeps,
): Promise<CreatedJob> {
  const create = async (): Promise<CreatedJob> => {
    const job = await jobFor(request, asked, deps);
    await deps.kept.start(job);
    return { job_id: job.execution_id, status: "queued" };
  };
  if (asked.key === undefined) return create();
  const body = { prefer: "respond-async", body: request.body };
  const outcome = await deps.idempotency.once(asked.principal, asked.key, body, clientLeft(reply), create);
  if (outcome.replayed) reply.header("idempotency-replayed", "true");
  return outcome.answer as CreatedJob;
}
