/** The queue of the API with a worker of the test, and the Idempotency-Keys of the same Redis. */
import { startJobs as startQueue } from "../../../../packages/job-queue/test/support/jobs.ts";
import { Idempotency } from "../../src/exec/idempotency.ts";

export { jobOf, never, OK, workFor } from "../../../../packages/job-queue/test/support/jobs.ts";

export async function startJobs(env: Record<string, string> = {}) {
  const made = await startQueue(env);
  return { ...made, idempotency: new Idempotency(made.redis) };
}

export type TestJobs = Awaited<ReturnType<typeof startJobs>>;
