/** A whole system on a Redis behind a sentinel, whose primary crashes in the middle of requests: docs/deploy.md says what is kept. */
import type { CreatedJob, PublicJob } from "@svc/contracts";
import { startWatched, type Watched } from "@svc/test-kit/components/sentinels";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const AFTER_MS = 60_000;
const LANES = 4;
/** Longer than the failover takes, so that there are jobs which wait and one which runs while it happens. */
const SLOW = { lang: "bash", code: "sleep 1; echo done" };
const HELLO = { lang: "bash", code: "echo hello" };

let watched: Watched;
let system: System;
let api: Api;

beforeAll(async () => {
  const sentinelPassword = newSecret();
  watched = await startWatched({ password: newSecret(), sentinelPassword });
  system = await startSystem({
    env: { ...OPEN_LIMITS, REDIS_URL: watched.url, SVC_REDIS_SENTINEL_PASSWORD: sentinelPassword },
  });
  api = new Api(system.url);
});
afterAll(async () => {
  const left = await system?.stop();
  await watched?.stop();
  expect(left).toEqual([]);
});

const create = async (): Promise<string> => {
  const answer = await api.post("/exec", SLOW, { headers: { prefer: "respond-async" } });
  expect(answer.status, answer.text).toBe(202);
  return answer.json<CreatedJob>().job_id;
};

/** Asks until there is an answer: while Redis is away there is none. */
async function ended(id: string): Promise<PublicJob> {
  let job: PublicJob | undefined;
  await until(
    async () => {
      const answer = await api.send("GET", `/jobs/${id}?wait_ms=1000`);
      if (answer.status === 200) job = answer.json<PublicJob>();
      return ["completed", "failed", "cancelled"].includes(job?.status ?? "");
    },
    AFTER_MS,
    () => job,
  );
  return job as PublicJob;
}

test("every request ends in its result or in an error that may be repeated; jobs that the replica has are kept", async () => {
  const jobs = await Promise.all(Array.from({ length: 8 }, create));
  await watched.replicated();
  const answers: Answer[] = [];
  let isOver = false;
  const lane = async () => {
    while (!isOver) answers.push(await api.post("/exec", HELLO));
  };
  const lanes = Array.from({ length: LANES }, lane);
  await until(() => answers.length >= LANES, AFTER_MS);
  await watched.failOver();
  const works = async () => (await api.post("/exec", HELLO)).status === 200;
  await until(works, AFTER_MS);
  isOver = true;
  await Promise.all(lanes);
  const wrong = answers.filter(({ status, text }) =>
    status === 200
      ? JSON.parse(text).stdout !== "hello\n"
      : ![502, 503, 504].includes(status) || typeof JSON.parse(text).error !== "string",
  );
  expect(wrong.map(({ status, text }) => [status, text])).toEqual([]);
  const ends = await Promise.all(jobs.map(ended));
  expect(ends.map(({ status, result }) => [status, result?.stdout])).toEqual(
    jobs.map(() => ["completed", "done\n"]),
  );
});

test("afterwards everything works as before, and all components are ready", async () => {
  await until(async () => (await fetch(`${system.url}/ready`)).ok, AFTER_MS);
  expect((await ended(await create())).status).toBe("completed");
  const input = await api.stage("in.txt", "three");
  expect(await api.exec({ lang: "py", code: "print(open('in.txt').read())", files: [input] })).toMatchObject({
    code: 0,
    stdout: "three\n",
  });
});
