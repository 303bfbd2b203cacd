import { expect, test, vi } from "vitest";
import { newestJobs } from "../../src/kept.tsx";

/** A service with three pages of one job each. The cursor of a page is its number. */
function served() {
  const list = vi.fn(async ({ cursor = "0" }: { cursor?: string | undefined } = {}) => {
    const page = Number(cursor);
    return { jobs: [{ job_id: `job ${page}` }], ...(page < 2 ? { next_cursor: String(page + 1) } : {}) };
  });
  return { list, svc: { jobs: { list } } as unknown as Parameters<typeof newestJobs>[0] };
}

test.each([
  [1, ["job 0"], "1"],
  [2, ["job 0", "job 1"], "2"],
  [3, ["job 0", "job 1", "job 2"], undefined],
  [4, ["job 0", "job 1", "job 2"], undefined],
])("%i pages of jobs are read from the newest one, as far as there are any", async (pages, ids, next) => {
  const { list, svc } = served();
  const { jobs, next_cursor } = await newestJobs(svc, pages);
  expect([jobs.map(({ job_id }) => job_id), next_cursor]).toEqual([ids, next]);
  expect(list).toHaveBeenCalledTimes(ids.length);
});
