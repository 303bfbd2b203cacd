/** The limits per caller as a client sees them: a short window and few seats. */
import { setTimeout as sleep } from "node:timers/promises";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, expect, test } from "vitest";

const SEATS = 2;
const ALLOWED = 20;
/** In which as many programs end on a machine of this speed. */
const WINDOW_MS = slow(20_000);
let system: Service;
let api: Api;

beforeAll(async () => {
  system = await startService({
    SVC_MAX_CONCURRENT_EXECUTIONS: String(SEATS),
    MAX_REQUESTS: String(ALLOWED),
    RATE_LIMIT_WINDOW: String(WINDOW_MS),
  });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const number = (answer: Answer, name: string) => Number(answer.headers.get(name) ?? Number.NaN);
const sleeper = { lang: "bash", code: "sleep 1; echo done" };

// First: the window begins with its first program.
test("the window lets its number pass, tells how long to wait, and then lets pass again", async () => {
  let answer = await api.tryExec({ lang: "bash", code: "true" });
  for (let sent = 0; answer.status === 200 && sent <= ALLOWED; sent++) {
    expect(number(answer, "ratelimit-limit")).toBe(ALLOWED);
    const remaining = number(answer, "ratelimit-remaining");
    answer = await api.tryExec({ lang: "bash", code: "true" });
    if (remaining > 0) expect(number(answer, "ratelimit-remaining")).toBe(remaining - 1);
    else expect(answer.status).toBe(429);
  }
  expect(answer.status).toBe(429);
  expect(answer.headers.get("ratelimit-policy")).toBe(`${ALLOWED};w=${WINDOW_MS / 1000}`);
  const wait = number(answer, "retry-after");
  expect(answer.refusal).toMatchObject({
    error: "rate_limited",
    retry_after_seconds: wait,
    retry_after: wait,
  });
  const listed = await api.send("GET", `/files/${"a".repeat(21)}`);
  expect(listed.status, "other scopes go on").toBe(404);
  await sleep(wait * 1000);
  expect((await api.tryExec({ lang: "bash", code: "true" })).status).toBe(200);
});

test("one caller has no more programs at once than seats, and may come again with each that ends", async () => {
  const answers = await Promise.all(Array.from({ length: 6 }, () => api.tryExec(sleeper)));
  const done = answers.filter(({ status }) => status === 200);
  expect(done.map((answer) => answer.json<{ stdout: string }>().stdout)).toEqual(Array(SEATS).fill("done\n"));
  for (const answer of answers.filter(({ status }) => status !== 200)) {
    expect([answer.status, number(answer, "retry-after")]).toEqual([429, 1]);
    expect(answer.refusal).toMatchObject({ error: "rate_limited", retry_after_seconds: 1 });
  }
  const again = await Promise.all([api.tryExec(sleeper), api.tryExec(sleeper)]);
  expect(again.map(({ status }) => status)).toEqual([200, 200]);
});
