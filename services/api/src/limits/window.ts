/** The arithmetic of a rate-limit window, its response headers, and the refusals of all limits. Pure. */
import { ServiceError } from "@svc/contracts";
import { type Limit, SCOPES, type Scope } from "./scopes.ts";

/** The state of a window right after a request was counted. */
export interface Window extends Limit {
  /** Requests that Redis has counted so far, including refused ones. */
  count: number;
  /** Time until the window ends. */
  leftMs: number;
}

const wholeSeconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000));

export const isOver = ({ count, requests }: Window) => count > requests;

/** Seconds until the window ends, rounded up. */
export const secondsLeft = ({ leftMs }: Window) => wholeSeconds(leftMs);

/** The headers of every answer of a limited route. */
export function windowHeaders(window: Window): Record<string, string> {
  const { requests, count } = window;
  return {
    ...limitHeaders(window),
    "ratelimit-remaining": String(Math.max(0, requests - count)),
    "ratelimit-reset": String(secondsLeft(window)),
  };
}

/** The headers that are known without Redis. */
export function limitHeaders({ requests, windowMs }: Limit): Record<string, string> {
  return {
    "ratelimit-limit": String(requests),
    "ratelimit-policy": `${requests};w=${wholeSeconds(windowMs)}`,
  };
}

export function windowIsFull(scope: Scope, window: Window): RateLimited {
  const { requests, windowMs } = window;
  const seconds = secondsLeft(window);
  return new RateLimited(
    scope,
    `Too many ${SCOPES[scope].what}: ${requests} are allowed in ${wholeSeconds(windowMs)} s; there is room again in ${seconds} s.`,
    seconds,
  );
}

/** A short guess: nobody knows when a running program ends and frees its seat. */
const SEAT_RETRY_SECONDS = 1;

export function seatsAreTaken(most: number): RateLimited {
  return new RateLimited(
    "concurrent_executions",
    `Too many executions at once: ${most} may wait or run at the same time.`,
    SEAT_RETRY_SECONDS,
  );
}

export function roundsAreTaken(most: number): RateLimited {
  return new RateLimited(
    "concurrent_rounds",
    `Too many programs go on at once: ${most} resumes may wait or run at the same time. The token stays good.`,
    SEAT_RETRY_SECONDS,
  );
}

/** The caller's other bodies are still being read, and this request waited too long or found the queue full. */
export function bodiesAreOpen(): RateLimited {
  return new RateLimited(
    "open_bodies",
    "Too many request bodies at once; send them completely, or fewer.",
    SEAT_RETRY_SECONDS,
  );
}

export function transfersAreOpen(most: number): RateLimited {
  return new RateLimited(
    "open_transfers",
    `Too many uploads and downloads at once: ${most} may be open at the same time; send and read them to their end, or close them.`,
    SEAT_RETRY_SECONDS,
  );
}

/** Each wait polls Redis until its job has ended. */
export function waitsAreOpen(most: number): RateLimited {
  return new RateLimited(
    "open_waits",
    `Too many waits for jobs at once: ${most} may be open in an API process, streams of events included.`,
    SEAT_RETRY_SECONDS,
  );
}

/** A guess: there is room again when something expires or is removed. */
const STORED_RETRY_SECONDS = 5;

export function tooManyJobs(most: number): RateLimited {
  return new RateLimited(
    "unfinished_jobs",
    `Too many jobs: ${most} may wait or run at the same time.`,
    STORED_RETRY_SECONDS,
  );
}

export function tooMuchStored(most: number): RateLimited {
  return new RateLimited(
    "stored_bytes",
    `Too much is stored of your jobs, of your programs with tools and of answers by Idempotency-Key: ${most} bytes are allowed. Delete jobs that you need no longer, finish paused programs, or wait: answers are kept for 10 minutes.`,
    STORED_RETRY_SECONDS,
  );
}

/** Limits other than the window of a scope. */
export const OTHER_LIMITS = [
  "concurrent_executions",
  "concurrent_rounds",
  "open_bodies",
  "open_transfers",
  "open_waits",
  "unfinished_jobs",
  "stored_bytes",
] as const;

/** The 429 of every limit, with the seconds until a retry makes sense. */
export class RateLimited extends ServiceError {
  /** What limited the request. */
  readonly by: Scope | (typeof OTHER_LIMITS)[number];

  constructor(by: RateLimited["by"], message: string, seconds: number) {
    super("rate_limited", message, {
      headers: { "retry-after": String(seconds) },
      extra: { retry_after_seconds: seconds, retry_after: seconds },
    });
    this.by = by;
  }
}
