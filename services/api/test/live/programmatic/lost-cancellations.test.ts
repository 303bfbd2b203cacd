/** Programs that are cancelled while no replica hears of it: its subscription was lost, and comes back later or not at all. */
import { ERRORS, type Job, type JobResult, newId, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ENDED, labelled, PAUSED, type Programs, startPrograms } from "../../support/programs.ts";

const CHANNEL = "svc:ptc:cancelled";
const CANCELLED: JobResult = {
  ok: false,
  error: { code: "execution_cancelled", ...ERRORS.execution_cancelled },
};
/** As many as the worker takes at once. */
const SLOTS = 8;
let made: Programs;
let began: (job: Job) => void;
let round: Promise<JobResult>;
/** Of the last round. */
let cancelled: AbortSignal;
beforeAll(async () => {
  made = await startPrograms((job, ofJob) => {
    cancelled = ofJob;
    began(job);
    return round;
  });
});
afterAll(() => made.stop());

const listeners = async () => ((await made.redis.pubsub("NUMSUB", CHANNEL)) as [string, number])[1];

async function loseSubscription(): Promise<void> {
  await made.redis.call("ACL", "SETUSER", "default", "-subscribe");
  await made.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await expect.poll(listeners).toBe(0);
}

/** All connections come back, as after a restart of Redis. */
async function restoreSubscription(): Promise<void> {
  await made.redis.call("ACL", "SETUSER", "default", "+subscribe");
  await made.redis.call("CLIENT", "KILL", "TYPE", "normal");
  await expect.poll(listeners).toBe(1);
}

/** The next round has begun, and lasts until `end`. */
function nextRound() {
  const { promise: begun, resolve } = Promise.withResolvers<Job>();
  began = resolve;
  const { promise, resolve: end } = Promise.withResolvers<JobResult>();
  round = promise;
  return { begun, end };
}

async function refused(answer: Promise<Response>): Promise<void> {
  const got = await answer;
  const body = expect.objectContaining({ error: "execution_cancelled" });
  expect([got.status, await got.json()]).toEqual([409, body]);
}

it.each(["start", "resume"])("a %s in progress is refused once the subscription is back", async (which) => {
  const label = newId();
  let paused: ToolCallRequired | undefined;
  if (which === "resume") {
    nextRound().end(PAUSED);
    paused = (await (await made.start()).json()) as ToolCallRequired;
  }
  const { begun, end } = nextRound();
  const answer = paused === undefined ? made.start(labelled(label)) : made.resume(paused, labelled(label));
  await begun;
  await loseSubscription();
  expect(await made.cancel(label)).toBe(1);
  await restoreSubscription();
  await refused(answer);
  end(ENDED);
});

it("a start that pauses before the subscription is back is refused, and its program is discarded", async () => {
  const label = newId();
  const { begun, end } = nextRound();
  const answer = made.start(labelled(label));
  const { execution_id } = await begun;
  await loseSubscription();
  expect(await made.cancel(label)).toBe(1);
  end(PAUSED);
  await refused(answer);
  await expect.poll(() => made.discarded).toContain(execution_id);
  expect(JSON.parse(String(await made.redis.get(`svc:ptc:${execution_id}`)))).toMatchObject({
    status: "cancelled",
  });
  await restoreSubscription();
});

it.each(["start", "resume"])(
  "the job of a %s is cancelled though its replica does not hear of it",
  async (which) => {
    const label = newId();
    let paused: ToolCallRequired | undefined;
    if (which === "resume") {
      nextRound().end(PAUSED);
      paused = (await (await made.start()).json()) as ToolCallRequired;
    }
    const { begun, end } = nextRound();
    const answer = paused === undefined ? made.start(labelled(label)) : made.resume(paused, labelled(label));
    await begun;
    await loseSubscription();
    expect(await made.cancel(label)).toBe(1);
    // It is looked for whenever the lock of the job is renewed.
    await expect.poll(() => cancelled.aborted).toBe(true);
    end(CANCELLED);
    await refused(answer);
    await restoreSubscription();
  },
);

it("a start whose job still waits in the queue is refused, and does not begin", async () => {
  const label = newId();
  const { end } = nextRound();
  const before = made.worker.started.length;
  const busy = Array.from({ length: SLOTS }, () => made.start());
  await expect.poll(() => made.worker.started.length).toBe(before + SLOTS);
  const answer = made.start(labelled(label));
  const waiting = async () => (await made.redis.keys("bull:*.1.1")).length;
  await expect.poll(waiting).toBe(SLOTS + 1);
  await loseSubscription();
  expect(await made.cancel(label)).toBe(1);
  await refused(answer);
  end(ENDED);
  for (const other of busy) expect((await other).status).toBe(200);
  expect(made.worker.started).toHaveLength(before + SLOTS);
  await restoreSubscription();
});
