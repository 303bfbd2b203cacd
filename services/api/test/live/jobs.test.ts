/** Jobs of callers who do not wait, while the store stands still, or when the queue has lost them. */
import { namespaceOf, newId, type Principal } from "@svc/contracts";
import { KeptJobs } from "@svc/job-queue";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { Jobs } from "../../src/jobs/jobs.ts";
import { jobOf, startJobs, type TestJobs } from "../support/consumer.ts";

let made: TestJobs;
let kept: KeptJobs;
let jobs: Jobs;
beforeAll(async () => {
  made = await startJobs();
  kept = new KeptJobs(made.redis);
  jobs = new Jobs(made.config, kept, made.jobs);
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

/** Stores the records of jobs that are not in the queue, and seem old enough to have been there. */
async function lose(count: number): Promise<{ principal: Principal; namespace: string }> {
  const principal = { tenantId: "tenant", userId: newId() };
  const namespace = namespaceOf(principal, { kind: "user" });
  for (let at = 0; at < count; at++) {
    const job = jobOf({ output_namespace: namespace });
    await kept.create(job, { jobs: 0, bytes: 0 });
    await made.redis.hset(`svc:job:${job.execution_id}`, "created_at", Date.now() - 60_000);
  }
  return { principal, namespace };
}

it("those that the queue has lost make room for another one, and a refused start looks at few of them", async () => {
  const { namespace } = await lose(150);
  const look = vi.spyOn(made.jobs, "look");
  await jobs.start(jobOf({ output_namespace: namespace }));
  expect(look).toHaveBeenCalledTimes(100);
  look.mockRestore();
  expect(await made.redis.zcard(`svc:jobs-open:${namespace}`)).toBe(51);
});

it("those that the queue has lost have failed in the list, too", async () => {
  const { principal, namespace } = await lose(2);
  await jobs.start(jobOf({ output_namespace: namespace }));
  const listed = (await jobs.list(principal, undefined)).jobs.map(({ status }) => status);
  expect(listed.sort()).toEqual(["failed", "failed", "queued"]);
});
