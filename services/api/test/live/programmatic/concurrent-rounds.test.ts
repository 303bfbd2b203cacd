/** How many programs of a caller go on at once is bounded over all replicas, and costs no other caller a start. */
import type { JobResult, ToolCallRequired } from "@svc/contracts";
import { afterEach, expect, test } from "vitest";
import { ENDED, executionOf, PAUSED, type Programs, RESULTS, startPrograms } from "../../support/programs.ts";

const SEATS = 2;
let made: Programs;
afterEach(() => made.stop());

/** Programs whose further rounds last until `end`. */
async function start(count: number, env: Record<string, string>) {
  const { promise: ended, resolve } = Promise.withResolvers<JobResult>();
  made = await startPrograms((job) => (job.resume === undefined ? PAUSED : ended), 2, env);
  const paused: ToolCallRequired[] = [];
  for (let at = 0; at < count; at++) paused.push((await (await made.start()).json()) as ToolCallRequired);
  return { paused, end: () => resolve(ENDED) };
}

/** Further rounds that the worker was given so far. */
const rounds = () => made.worker.started.filter((id) => !id.endsWith(".1.1"));

/** On the replica of that index. */
const resume = (at: number, { continuation_token }: ToolCallRequired, init?: RequestInit) =>
  fetch(`${made.urls[at % 2]}/exec/programmatic`, {
    method: "POST",
    ...init,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ continuation_token, tool_results: RESULTS }),
  });

async function expectRefused(answer: Response): Promise<void> {
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "1"]);
  expect(await answer.json()).toMatchObject({
    error: "rate_limited",
    message: expect.stringContaining("resumes may wait or run"),
  });
}

const statusOf = async (paused: ToolCallRequired) =>
  JSON.parse(String(await made.redis.get(`svc:ptc:${executionOf(paused)}`))).status;

test("a caller's further rounds are as many as it has seats, whatever the replica; a refused token stays good", async () => {
  const { paused, end } = await start(5, { SVC_MAX_CONCURRENT_EXECUTIONS: String(SEATS) });
  const running = new Map<ToolCallRequired, Promise<Response>>();
  const refused: ToolCallRequired[] = [];
  await Promise.all(
    paused.map(async (program, at) => {
      const answer = resume(at, program);
      const isRefused = await Promise.race([
        answer.then(() => true),
        expect
          .poll(rounds)
          .toContain(`${executionOf(program)}.2.1`)
          .then(() => false),
      ]);
      if (!isRefused) return running.set(program, answer);
      await expectRefused(await answer);
      return refused.push(program);
    }),
  );
  expect([running.size, rounds().length]).toEqual([SEATS, SEATS]);
  for (const program of refused) expect(await statusOf(program)).toBe("paused");
  // Executions have seats of their own, and who waits for an answer needs none.
  expect((await made.start()).status).toBe(200);
  const [first] = running.keys();
  const repeated = resume(1, first as ToolCallRequired);
  await expect
    .poll(() => made.redis.exists(`svc:ptc:${executionOf(first as ToolCallRequired)}:answer:1:waiter`))
    .toBe(1);
  end();
  for (const answer of [...running.values(), repeated]) {
    expect(await (await answer).json()).toMatchObject({ status: "completed" });
  }
  for (const program of refused)
    expect(await (await made.resume(program)).json()).toMatchObject({ status: "completed" });
  const counts = await Promise.all(made.replicas.map(({ registry }) => registry.metrics()));
  const counted = counts.map((text) =>
    Number(/^svc_rate_limited_total\{scope="concurrent_rounds"\} (\d+)$/m.exec(text)?.[1]),
  );
  expect((counted[0] as number) + (counted[1] as number)).toBe(refused.length);
});

test("a round keeps its seat when its client leaves, until it ends", async () => {
  const { paused, end } = await start(2, { SVC_MAX_CONCURRENT_EXECUTIONS: "1" });
  const [first, second] = paused as [ToolCallRequired, ToolCallRequired];
  const client = new AbortController();
  const left = resume(0, first, { signal: client.signal });
  await expect.poll(rounds).toHaveLength(1);
  client.abort();
  await expect(left).rejects.toThrow();
  for (const at of [0, 1]) await expectRefused(await resume(at, second));
  end();
  await expect.poll(() => statusOf(first)).toBe("completed");
  await expect.poll(async () => (await resume(1, second)).status).toBe(200);
});

test("without a limit of seats all go on at once, and a full queue of them refuses no start", async () => {
  const most = 3;
  const { paused, end } = await start(most + 2, {
    SVC_MAX_CONCURRENT_EXECUTIONS: "0",
    JOB_QUEUE_LIMIT: String(most),
  });
  const answers = paused.map((program) => resume(0, program));
  await expect.poll(rounds).toHaveLength(most + 2);
  expect((await made.start()).status).toBe(200);
  end();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200));
});
