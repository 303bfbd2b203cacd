/** Programs that nobody waits for. */
import type { CreatedJob, ExecResponse, JobList, Job as KeptJob } from "./api.generated.ts";
import { type RunEvent, runEvents } from "./events.ts";
import type { CallOptions, Http } from "./http.ts";
import { bodyOf, type Program } from "./inputs.ts";
import { type Result, withFiles } from "./results.ts";

export interface CreateOptions extends CallOptions {
  /** The same key and program make one job, for ten minutes. */
  idempotencyKey?: string | undefined;
}

export type Job = Omit<KeptJob, "result"> & { result?: Result };

/** Of one request; longer waits are several. */
const WAIT_MS = 30_000;

export class Jobs {
  readonly #http: Http;

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

  /** `waitMs`: answer when it has ended, after that time at the latest (30,000 at most). */
  async get(id: string, { waitMs, ...options }: CallOptions & { waitMs?: number } = {}): Promise<Job> {
    const query = waitMs === undefined ? "" : `?wait_ms=${Math.floor(waitMs)}`;
    const { result, ...job } = await this.#http.json<KeptJob>({
      method: "GET",
      path: `/jobs/${encodeURIComponent(id)}${query}`,
      ...options,
    });
    return result === undefined ? job : { ...job, result: withFiles(result as ExecResponse, this.#http) };
  }

  /** The job when it has ended. */
  async wait(id: string, options: CallOptions = {}): Promise<Job> {
    for (;;) {
      const job = await this.get(id, { ...options, waitMs: WAIT_MS });
      if (job.ended_at !== undefined) return job;
    }
  }

  /** The newest first, a hundred at once; `next_cursor` goes on. */
  list({ cursor, ...options }: CallOptions & { cursor?: string | undefined } = {}): Promise<JobList> {
    const query = cursor === undefined ? "" : `?cursor=${encodeURIComponent(cursor)}`;
    return this.#http.json({ method: "GET", path: `/jobs${query}`, ...options });
  }

  /** Ends a job that waits or runs, and removes one that has ended. */
  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await this.#http.done({ method: "DELETE", path: `/jobs/${encodeURIComponent(id)}`, ...options });
  }

  /** From the beginning of its program to its end. Leaving early does not cancel the job. */
  async *events(id: string, options: CallOptions = {}): AsyncGenerator<RunEvent, void> {
    const path = `/jobs/${encodeURIComponent(id)}/events`;
    const response = await this.#http.send({ method: "GET", path, ...options });
    yield* runEvents(response, this.#http, options.signal);
  }
}
