/** What is kept of a program with tools from its first pause to its end. JSON in Redis; shapes only. */
import type { JobFile, Principal, Tool } from "@svc/contracts";

/** What never changes: enough to start the program again from the top. */
export interface Program {
  v: 1;
  execution_id: string;
  session_id: string;
  principal: Principal;
  output_namespace: string;
  language: string;
  version: string;
  code: string;
  args: string[];
  stdin?: string;
  /** Limit of one round, ms. */
  run_timeout: number;
  /** By the caller's plan, bytes. */
  run_memory_limit?: number;
  files: JobFile[];
  tools: Tool[];
  hash_seed: number;
  /** What the caller may cancel it by. */
  label?: string;
}

/** A call that waits for its result, and its place in the list of calls. */
export interface Waiting {
  call_id: string;
  at: number;
}

export interface Progress {
  status: "paused" | "ended" | "cancelled";
  /** Rounds that have ended with an answer; the token of the last pause holds this number. */
  round: number;
  waiting: Waiting[];
  /** Where the frozen program is; absent when there is none. */
  runner_url?: string;
  /** Pays for the calls of the attempt that paused last. */
  grant_id?: string;
  /** ms since 1970. */
  paused_at: number;
  /** Run time of the attempt that paused last, ms. */
  run_ms: number;
  /** Calls in the list. */
  calls: number;
  /** Bytes of all results. */
  history_bytes: number;
  /** Bytes of the program and its calls without results. */
  state_bytes: number;
  /** The results that were taken in for the next round, and the try that is made of it. */
  taken?: {
    digest: string;
    mode: "live" | "replay";
    tries: number;
    /** That try is over. */
    failed?: true;
  };
}
