/** The queue of the API with a worker of the test, and the Idempotency-Keys of the same Redis. */
import { startJobs as startQueue } from "@svc/test-kit/components/job-queue";
import { Idempotency } from "../../src/exec/idempotency.ts";

export { never, OK, workFor } from "@svc/test-kit/components/job-queue";
export { jobOf } from "@svc/test-kit/components/messages";

export async function startJobs(env: Record<string, string> = {}) {
  const made = await startQueue(env);
  return { ...made, idempotency: new Idempotency(made.redis) };
}

export type TestJobs = Awaited<ReturnType<typeof startJobs>>;
