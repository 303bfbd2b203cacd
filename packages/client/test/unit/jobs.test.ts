/** Many jobs that are waited for at once, and a service that lets in so many waits. */
import { type Job, Svc } from "svc-client";
import { expect, onTestFinished, test, vi } from "vitest";

const MOST = 32;
const ENDED = { status: "completed", ended_at: "2026-01-01T00:00:00Z" };

const limited = (seconds: number) =>
  Response.json(
    { error: "rate_limited", message: "Later." },
    { status: 429, headers: { "retry-after": `${seconds}` } },
  );

/** A service that keeps waits open until they are told how to end, and refuses those that are too many. */
function waiting() {
  const open = new Map<string, (answer: object) => void>();
  const asked: string[] = [];
  const answer = async (url: string | URL | Request) => {
    const id = new URL(`${url}`).pathname.slice("/v1/jobs/".length);
    asked.push(id);
    if (open.size === MOST) return limited(0);
    const { promise, resolve } = Promise.withResolvers<object>();
    open.set(id, resolve);
    const told = await promise;
    open.delete(id);
    return Response.json({ job_id: id, ...told });
  };
  const client = () => new Svc({ baseUrl: "http://svc.example", fetch: answer as typeof fetch });
  return { open, asked, client };
}

const ids = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name}${at}`);

test("more jobs than may be waited for at once take turns, and none is refused", async () => {
  const { open, asked, client } = waiting();
  const { jobs } = client();
  const ended: Promise<Job>[] = ids("a", MOST + 8).map((id) => jobs.wait(id));
  await expect.poll(() => open.size).toBe(MOST);
  expect(asked).toEqual(ids("a", MOST));
  // The first goes on: it stands behind those that have not been asked for yet.
  open.get("a0")?.({ status: "running" });
  await expect.poll(() => asked.length).toBe(MOST + 1);
  expect(asked.at(-1)).toBe(`a${MOST}`);
  let isOver = false;
  const all = Promise.all(ended).finally(() => {
    isOver = true;
  });
  await expect
    .poll(() => {
      for (const tell of open.values()) tell(ENDED);
      return isOver;
    })
    .toBe(true);
  expect((await all).map(({ job_id }) => job_id)).toEqual(ids("a", MOST + 8));
  expect(asked).toEqual([...ids("a", MOST + 8), "a0"]);
});

test("a wait that is given up before its turn takes none", async () => {
  const { open, asked, client } = waiting();
  const { jobs } = client();
  const ended = ids("a", MOST).map((id) => jobs.wait(id));
  const left = new AbortController();
  const given = jobs.wait("left", { signal: left.signal });
  const last = jobs.wait("last");
  left.abort(new Error("enough"));
  await expect(given).rejects.toThrow("enough");
  await expect(jobs.wait("never", { signal: left.signal })).rejects.toThrow("enough");
  for (const tell of open.values()) tell(ENDED);
  await Promise.all(ended);
  await expect.poll(() => open.has("last")).toBe(true);
  open.get("last")?.(ENDED);
  await last;
  expect(asked).toEqual([...ids("a", MOST), "last"]);
});

test("a wait that others of the caller leave no room comes again, and a question does not", async () => {
  const { open, asked, client } = waiting();
  const others = client();
  const ended = ids("a", MOST).map((id) => others.jobs.wait(id));
  await expect.poll(() => open.size).toBe(MOST);
  const { jobs } = client();
  await expect(jobs.get("one", { waitMs: 30_000 })).rejects.toMatchObject({ code: "rate_limited" });
  const one = jobs.wait("two");
  await expect.poll(() => asked.filter((id) => id === "two").length).toBeGreaterThan(3);
  for (const tell of open.values()) tell(ENDED);
  await Promise.all(ended);
  await expect.poll(() => open.has("two")).toBe(true);
  open.get("two")?.(ENDED);
  expect(await one).toMatchObject({ job_id: "two", status: "completed" });
});

test("a wait comes again after a longer time than other requests wait", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const answers = [limited(60), Response.json({ job_id: "j", ...ENDED })];
  const svc = new Svc({ baseUrl: "http://svc.example", fetch: async () => answers.shift() as Response });
  const ended = svc.jobs.wait("j");
  await vi.advanceTimersByTimeAsync(59_999);
  expect(answers).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(await ended).toMatchObject({ job_id: "j" });
});
