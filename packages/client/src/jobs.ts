/** Jobs: programs that run without a caller that waits for them. */
import type { CreatedJob, ExecResponse, JobList, Job as KeptJob } from "./api.generated.ts";
import { type RunEvent, runEvents } from "./events.ts";
import type { CallOptions, Http } from "./http.ts";
import { bodyOf, type Program } from "./inputs.ts";
import { type Result, withFiles } from "./results.ts";
import { Turns } from "./turns.ts";

export interface CreateOptions extends CallOptions {
  /** Within ten minutes, the same key and program create only one job. */
  idempotencyKey?: string | undefined;
}

export type Job = Omit<KeptJob, "result"> & { result?: Result };

/** Longest wait of one request; a longer wait takes several requests. */
const WAIT_MS = 30_000;
/** Waits that a caller may have open in one process of the service. A wait beyond this limit is refused, but counts as a request. */
const WAITS_AT_ONCE = 32;

export class Jobs {
  readonly #http: Http;
  readonly #waits = new Turns(WAITS_AT_ONCE);

  constructor(http: Http) {
    this.#http = http;
  }

  async create(program: Program, { idempotencyKey, ...options }: CreateOptions = {}): Promise<CreatedJob> {
    return this.#http.json({
      method: "POST",
      path: "/exec",
      headers: {
        "content-type": "application/json",
        prefer: "respond-async",
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      },
      body: bodyOf(program),
      ...options,
    });
  }

  /** `waitMs`: waits until the job has ended, but at most for this time (maximum 30,000). */
  get(id: string, { waitMs, ...options }: CallOptions & { waitMs?: number } = {}): Promise<Job> {
    return this.#get(id, waitMs, options);
  }

  /** Waits until the job has ended. More than 32 waits at once take turns, so each may learn of the end a little later. */
  async wait(id: string, options: CallOptions = {}): Promise<Job> {
    const ask = () => this.#get(id, WAIT_MS, { ...options, waitsOutLimits: true });
    for (;;) {
      const job = await this.#waits.during(ask, options.signal);
      if (job.ended_at !== undefined) return job;
    }
  }

  async #get(
    id: string,
    waitMs: number | undefined,
    options: CallOptions & { waitsOutLimits?: boolean },
  ): Promise<Job> {
    const query = waitMs === undefined ? "" : `?wait_ms=${Math.floor(waitMs)}`;
    const { result, ...job } = await this.#http.json<KeptJob>({
      method: "GET",
      path: `/jobs/${encodeURIComponent(id)}${query}`,
      ...options,
    });
    return result === undefined ? job : { ...job, result: withFiles(result as ExecResponse, this.#http) };
  }

  /** Lists jobs, the newest first, a hundred per page. `next_cursor` leads to the next page. */
  list({ cursor, ...options }: CallOptions & { cursor?: string | undefined } = {}): Promise<JobList> {
    const query = cursor === undefined ? "" : `?cursor=${encodeURIComponent(cursor)}`;
    return this.#http.json({ method: "GET", path: `/jobs${query}`, ...options });
  }

  /** Ends a job that waits or runs, and removes one that has ended. */
  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await this.#http.done({ method: "DELETE", path: `/jobs/${encodeURIComponent(id)}`, ...options });
  }

  /** The events of a job, from the start of its program to its end. Leaving the loop early does not cancel the job. */
  async *events(id: string, options: CallOptions = {}): AsyncGenerator<RunEvent, void> {
    const path = `/jobs/${encodeURIComponent(id)}/events`;
    const response = await this.#http.send({ method: "GET", path, ...options });
    yield* runEvents(response, this.#http, options.signal);
  }
}
