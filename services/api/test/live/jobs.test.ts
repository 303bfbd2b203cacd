/** Jobs of callers who do not wait, while the store stands still. */
import { newId } from "@svc/contracts";
import { KeptJobs } from "@svc/job-queue";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Jobs } from "../../src/jobs/jobs.ts";
import { jobOf, startJobs, type TestJobs } from "../support/consumer.ts";

let made: TestJobs;
let jobs: Jobs;
beforeAll(async () => {
  made = await startJobs();
  jobs = new Jobs(made.config, new KeptJobs(made.redis), made.jobs);
});
afterAll(() => made.stop());

it("one whose start was refused is not there afterwards, though the store has noted it", async () => {
  const mine = jobOf({ output_namespace: `tenant:user:${newId()}` });
  // The store knows the scripts by their digests from now on.
  await jobs.start(jobOf({ output_namespace: `tenant:user:${newId()}` }));
  const keys = async () => (await made.redis.keys("svc:*")).sort();
  const before = await keys();
  process.kill(made.server.pid, "SIGSTOP");
  try {
    await expect(jobs.start(mine)).rejects.toMatchObject({ code: "store_unavailable" });
  } finally {
    process.kill(made.server.pid, "SIGCONT");
  }
  // Behind all that was sent meanwhile.
  await made.redis.ping();
  expect(await keys()).toEqual(before);
});
