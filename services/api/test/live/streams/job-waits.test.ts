/** Waits for jobs and streams of their events: few of a caller at once, and those that were left make room. */
import { MOST_WAITS } from "@svc/api/limits/open-waits";
import type { JobResult } from "@svc/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ENDED, type Programs, startPrograms } from "../../support/programs.ts";

let made: Programs;
const end = Promise.withResolvers<JobResult>();
beforeAll(async () => {
  made = await startPrograms(() => end.promise);
});
afterAll(() => made.stop());

const get = (path: string, init?: RequestInit) => fetch(`${made.urls[0]}/jobs/${path}`, init);

const refusals = async () => {
  const text = await (made.replicas[0] as Programs["replicas"][0]).registry.metrics();
  return Number(/^svc_rate_limited_total\{scope="open_waits"\} (\d+)$/m.exec(text)?.[1]);
};

test("a caller has so many open in a process; one more is told to come again, and may when another one has been closed", async () => {
  const created = await fetch(`${made.urls[0]}/exec`, {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify({ lang: "py", code: "print(1)" }),
  });
  const { job_id } = (await created.json()) as { job_id: string };
  const client = new AbortController();
  const leaving = await get(`${job_id}/events`, { signal: client.signal });
  const others = Array.from({ length: MOST_WAITS - 2 }, () => get(`${job_id}/events`));
  const streams = await Promise.all(others);
  expect([leaving, ...streams].map(({ status }) => status)).toEqual(Array(MOST_WAITS - 1).fill(200));
  // More than is allowed is lowered, however much it is.
  const waiting = get(`${job_id}?wait_ms=${"9".repeat(400)}`);
  await expect.poll(async () => (await get(`${job_id}?wait_ms=1`)).status).toBe(429);
  for (const path of [`${job_id}/events`, `${job_id}?wait_ms=30000`]) {
    const refused = await get(path);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await refused.json()).toMatchObject({
      error: "rate_limited",
      message: expect.stringContaining("waits for jobs"),
    });
  }
  expect(await refusals()).toBeGreaterThanOrEqual(3);
  expect(await (await get(job_id)).json()).toMatchObject({ job_id });
  client.abort();
  await expect.poll(async () => (await get(`${job_id}?wait_ms=1`)).status).toBe(200);
  end.resolve(ENDED);
  for (const stream of streams) expect(await stream.text()).toContain("event: result");
  expect(await (await waiting).json()).toMatchObject({ status: "completed" });
});
