/** Jobs that nobody waits for, as their callers see them: Prefer: respond-async, GET /v1/jobs, their events, their end. */
import type { CreatedJob, PublicJob } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const shared = sharedSystem();
const api = new Api(shared.url);
const signer = newSigner();
let second: SecondApi;
let secured: Api;

const MOST = 2;
beforeAll(async () => {
  second = await startSecondApi(shared, {
    ...OPEN_LIMITS,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
    SVC_MAX_UNFINISHED_JOBS: String(MOST),
    SVC_JOB_RETENTION_SECONDS: "600",
  });
  secured = new Api(second.url);
});
afterAll(async () => {
  expect(await second?.stop()).toBe(0);
});

const ASYNC = { prefer: "respond-async" };
const as = (sub: string) => ({ authorization: `Bearer ${signer.mint({ claims: { sub } })}` });
const create = async (input: ExecInput, headers: Record<string, string> = {}, at = api) => {
  const answer = await at.post("/exec", input, { headers: { ...ASYNC, ...headers } });
  expect(answer.status, answer.text).toBe(202);
  const created = answer.json<CreatedJob>();
  expect(answer.headers.get("location")).toBe(`/v1/jobs/${created.job_id}`);
  expect(answer.headers.get("preference-applied")).toBe("respond-async");
  expect(created.status).toBe("queued");
  return created.job_id;
};
const find = async (id: string, query = "") => (await api.send("GET", `/jobs/${id}${query}`)).ok<PublicJob>();
const ended = (id: string) => find(id, "?wait_ms=30000");
const remove = (id: string, at = api, headers = {}) => at.send("DELETE", `/jobs/${id}`, { headers });

/** All events of a job, when it has ended. */
async function eventsOf(
  id: string,
  at = api.url,
): Promise<{ event: string; data: Record<string, unknown> }[]> {
  const response = await fetch(`${at}/jobs/${id}/events`);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  return (await response.text())
    .split("\n\n")
    .filter((block) => block.startsWith("event: "))
    .map((block) => {
      const [event = "", data = ""] = block.split("\n");
      return { event: event.slice("event: ".length), data: JSON.parse(data.slice("data: ".length)) };
    });
}
const textOf = (events: Awaited<ReturnType<typeof eventsOf>>, stream: string) =>
  events
    .filter(({ event }) => event === stream)
    .map(({ data }) => data.text)
    .join("");

/** Runs until it is cancelled. */
const ENDLESS = { lang: "bash", code: "echo begun; sleep 50" };

describe("a job", () => {
  test("answers at once, and its result is what the program did", async () => {
    const id = await create({ lang: "py", code: "print(6 * 7); open('a.txt', 'w').write('x')" });
    const job = await ended(id);
    expect(job).toMatchObject({ job_id: id, status: "completed", language: "python" });
    expect(job.result).toMatchObject({ stdout: "42\n", code: 0, files: [{ name: "a.txt", size: 1 }] });
    const [created, started, end] = [job.created_at, job.started_at, job.ended_at].map((at) =>
      Date.parse(at ?? ""),
    );
    expect(created).toBeLessThanOrEqual(started ?? Number.NaN);
    expect(started).toBeLessThanOrEqual(end ?? Number.NaN);
    expect(
      (await api.send("GET", "/jobs")).ok<{ jobs: PublicJob[] }>().jobs.map(({ job_id }) => job_id),
    ).toContain(id);
  });

  test.each<[string, ExecInput, object]>([
    ["fails", { lang: "bash", code: "exit 3" }, { code: 3, status: null }],
    ["runs out of time", { lang: "bash", code: "sleep 9", run_timeout: 300 }, { status: "TO" }],
  ])("whose program %s is completed", async (_what, input, result) => {
    expect(await ended(await create(input))).toMatchObject({ status: "completed", result });
  });

  test("whose request is wrong is refused as ever", async () => {
    const answer = await api.post("/exec", { lang: "nope", code: "" }, { headers: ASYNC });
    expect([answer.status, answer.refusal.error]).toEqual([400, "unsupported_language"]);
    const both = await api.post("/exec", ENDLESS, { headers: { ...ASYNC, accept: "text/event-stream" } });
    expect([both.status, both.refusal.details?.[0]?.path]).toEqual([400, "Prefer"]);
    for (const path of ["/jobs/short", "/jobs?cursor=x", `/jobs/${"A".repeat(21)}?wait_ms=soon`])
      expect((await api.send("GET", path)).status, path).toBe(400);
  });

  test("is made once for an Idempotency-Key", async () => {
    const headers = { ...ASYNC, "idempotency-key": `job-${Math.random()}` };
    const send = () => api.post("/exec", { lang: "bash", code: "echo once" }, { headers });
    const [first, again] = [await send(), await send()];
    expect([again.status, again.text]).toEqual([202, first.text]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    const { prefer: _, ...direct } = headers;
    const other = await api.post("/exec", { lang: "bash", code: "echo once" }, { headers: direct });
    expect([other.status, other.refusal.error]).toEqual([422, "idempotency_key_reused"]);
  });

  test("outlives the API process that took it", async () => {
    const replica = await startSecondApi(shared, OPEN_LIMITS);
    const id = await create({ lang: "bash", code: "sleep 1; echo late" }, {}, new Api(replica.url));
    await replica.kill();
    expect(await ended(id)).toMatchObject({ status: "completed", result: { stdout: "late\n" } });
  });
});

describe("events", () => {
  test("are read from the beginning, while it runs by two and afterwards by a third", async () => {
    const code = "for i in 1 2 3; do echo $i; sleep 0.2; done; echo é >&2; echo 1 > a.txt";
    const id = await create({ lang: "bash", code });
    const during = await Promise.all([eventsOf(id), eventsOf(id)]);
    const afterwards = await eventsOf(id);
    const job = await find(id);
    for (const events of [...during, afterwards]) {
      expect(events[0]).toMatchObject({ event: "started", data: { language: "bash" } });
      expect([textOf(events, "stdout"), textOf(events, "stderr")]).toEqual(["1\n2\n3\n", "é\n"]);
      expect(events.at(-2)).toEqual({ event: "file", data: job.result?.files[0] });
      expect(events.at(-1)).toEqual({ event: "result", data: job.result });
    }
  });

  test("of a cancelled job end with an error, and its reader's leaving cancels nothing", async () => {
    const id = await create(ENDLESS);
    const left = new AbortController();
    const reader = fetch(`${api.url}/jobs/${id}/events`, { signal: left.signal });
    const body = (await reader).body?.getReader();
    let seen = "";
    while (!seen.includes("begun")) seen += new TextDecoder().decode((await body?.read())?.value);
    left.abort();
    const events = eventsOf(id);
    expect(await find(id)).toMatchObject({ status: "running" });
    expect((await remove(id)).status).toBe(202);
    expect((await events).at(-1)).toMatchObject({ event: "error", data: { error: "execution_cancelled" } });
    expect(await ended(id)).toMatchObject({ status: "cancelled", error: { error: "execution_cancelled" } });
  });
});

describe("the end of a job", () => {
  test("comes by DELETE; once it has ended, DELETE removes it with its events", async () => {
    const id = await create(ENDLESS);
    await expect.poll(async () => (await find(id)).status).toBe("running");
    expect((await remove(id)).status).toBe(202);
    expect(await ended(id)).toMatchObject({ status: "cancelled" });
    expect((await remove(id)).status).toBe(204);
    const gone = await api.send("GET", `/jobs/${id}`);
    expect([gone.status, gone.refusal.error]).toEqual([404, "job_not_found"]);
    expect((await remove(id)).status).toBe(404);
    expect((await api.send("GET", `/jobs/${id}/events`)).status).toBe(404);
  });

  test("a wait for it ends with its time", async () => {
    const id = await create(ENDLESS);
    const began = performance.now();
    expect((await find(id, "?wait_ms=300")).ended_at).toBeUndefined();
    expect(performance.now() - began).toBeGreaterThanOrEqual(299);
    await remove(id);
  });
});

describe("callers", () => {
  test("see their own jobs alone", async () => {
    const id = await create({ lang: "bash", code: "true" }, as("alice"), secured);
    for (const [method, path] of [
      ["GET", `/jobs/${id}`],
      ["GET", `/jobs/${id}/events`],
      ["DELETE", `/jobs/${id}`],
    ] as const) {
      const answer = await secured.send(method, path, { headers: as("bob") });
      expect([answer.status, answer.refusal.error], path).toEqual([404, "job_not_found"]);
    }
    const listed = async (sub: string) =>
      (await secured.send("GET", "/jobs", { headers: as(sub) })).ok<{ jobs: PublicJob[] }>().jobs.length;
    expect([await listed("alice"), await listed("bob")]).toEqual([1, 0]);
    expect((await secured.send("GET", `/jobs/${id}`)).status).toBe(401);
  });

  test("have a limited number of jobs that have not ended", async () => {
    const ids = [];
    for (let at = 0; at < MOST; at++) ids.push(await create(ENDLESS, as("carol"), secured));
    const refused = await secured.post("/exec", ENDLESS, { headers: { ...ASYNC, ...as("carol") } });
    expect([refused.status, refused.refusal.error]).toEqual([429, "rate_limited"]);
    expect(refused.headers.get("retry-after")).toBe("5");
    for (const id of ids) expect((await remove(id, secured, as("carol"))).status).toBe(202);
    await expect
      .poll(
        async () =>
          (
            await secured.post(
              "/exec",
              { lang: "bash", code: "true" },
              { headers: { ...ASYNC, ...as("carol") } },
            )
          ).status,
      )
      .toBe(202);
  });
});
