/** What the service keeps for the caller: jobs, and sessions where it keeps any. Read when the list is opened. */
import { useState } from "preact/hooks";
import type { JobList, SessionList } from "../../packages/client/src/api.generated.ts";
import type { Svc } from "../../packages/client/src/svc.ts";

type Failed = (error: unknown) => void;

/** The newest jobs, up to so many pages of the list. */
export async function newestJobs({ jobs }: Pick<Svc, "jobs">, pages: number): Promise<JobList> {
  let list = await jobs.list();
  for (let page = 1; page < pages && list.next_cursor !== undefined; page++) {
    const next = await jobs.list({ cursor: list.next_cursor });
    list = { ...next, jobs: [...list.jobs, ...next.jobs] };
  }
  return list;
}

export function JobsList({
  svc,
  onShow,
  onError,
}: {
  svc: Svc;
  onShow: (id: string) => void;
  onError: Failed;
}) {
  const [{ jobs, next_cursor }, setList] = useState<JobList>({ jobs: [] });
  const [pages, setPages] = useState(1);
  const read = (count = pages) => {
    setPages(count);
    void newestJobs(svc, count).then(setList, onError);
  };
  /** Cancels a job, or removes one that had ended. One that has ended since is left: it would be removed with its result. */
  const end = async (id: string, hadEnded: boolean) => {
    if (!hadEnded && (await svc.jobs.get(id)).ended_at !== undefined) return;
    await svc.jobs.cancel(id);
  };
  return (
    <details onToggle={(event) => event.currentTarget.open && read()}>
      <summary>Jobs</summary>
      <button type="button" onClick={() => read()}>
        Refresh
      </button>
      <ul aria-label="Jobs">
        {jobs.map(({ job_id, status, language, created_at, ended_at }) => (
          <li key={job_id}>
            {language}, {status}, {new Date(created_at).toLocaleTimeString()}{" "}
            <button type="button" onClick={() => onShow(job_id)}>
              Show
            </button>{" "}
            <button
              type="button"
              onClick={() => void end(job_id, ended_at !== undefined).then(() => read(), onError)}
            >
              {ended_at === undefined ? "Cancel" : "Remove"}
            </button>
          </li>
        ))}
      </ul>
      {next_cursor !== undefined && (
        <button type="button" onClick={() => read(pages + 1)}>
          Older jobs
        </button>
      )}
    </details>
  );
}

export function SessionsList({
  svc,
  onChoose,
  onError,
}: {
  svc: Svc;
  onChoose: (hint: string) => void;
  onError: Failed;
}) {
  const [sessions, setSessions] = useState<SessionList["sessions"]>([]);
  const read = () => void svc.sessions.list().then(setSessions, onError);
  return (
    <details onToggle={(event) => event.currentTarget.open && read()}>
      <summary>Sessions</summary>
      <ul aria-label="Sessions">
        {sessions.map(({ id, hint, size, language_last }) => (
          <li key={id}>
            <bdi>{hint ?? "(default)"}</bdi>, {language_last}, {size} bytes{" "}
            {hint !== undefined && (
              <button type="button" onClick={() => onChoose(hint)}>
                Continue
              </button>
            )}{" "}
            <button type="button" onClick={() => void svc.sessions.delete(id).then(read, onError)}>
              Delete
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}
