/** What is simulated, and what comes out. Times in milliseconds. */
import type { PoolSpec } from "./pool.ts";
import type { Distribution } from "./random.ts";

/** Processor time of one round of a run. */
export interface Round {
  /** API, gateway, file server and tool call server. */
  front: number;
  /** Redis. */
  store: number;
  /** Worker, runner, jaild and program, before the answer. 0: the request runs nothing, as an upload. */
  node: number;
}

export interface SimulatedKind {
  name: string;
  /** Relative to those of the others. */
  share: number;
  first: Round;
  /** For each call of a tool. */
  further: Round;
  /** Calls of one program, one after the other, with as long a pause at each. */
  calls: number;
  pauseMs: number;
  /** In its slot and without a processor. */
  waitMs: number;
  pool: PoolSpec | undefined;
}

/** `rate`: Poisson arrivals; `clients`: each sends its next request when it has its answer; for specs that refuse nothing. */
export type Arrivals =
  | { type: "rate"; perSecond: number; seconds: number }
  | { type: "clients"; clients: number; requests: number };

export interface ClusterSpec {
  seed: number;
  nodes: number;
  cores: number;
  /** Of each node. */
  slots: number;
  /** Machines of the API and what stands beside it; 0: on the first node, and so is Redis. */
  fronts: number;
  kinds: readonly SimulatedKind[];
  /** Of a program's processor time, mean 1. */
  variation: Distribution;
  arrivals: Arrivals;
  /** Callers; each request is of one of them at random. */
  principals: number;
  /** SVC_MAX_CONCURRENT_EXECUTIONS; 0: no limit. */
  seats: number;
  /** JOB_QUEUE_LIMIT of all API processes together; 0: no limit. */
  limit: number;
  /** JOB_QUEUE_WAIT_MS. */
  queueWaitMs: number;
  /** Nodes that are away for a while, with what they were doing lost. */
  failures?: readonly { node: number; atMs: number; forMs: number }[];
  /** Share of the requests that come from one caller, the first. */
  flood?: number;
}

export interface Latency {
  p50: number;
  p95: number;
  p99: number;
  mean: number;
  most: number;
}

export interface Outcome {
  arrived: number;
  answered: number;
  /** 429: the caller has all its seats. */
  refusedBySeats: number;
  /** 503: the API has its limit in hand. */
  refusedByLimit: number;
  /** 503: waited too long. */
  gaveUp: number;
  /** Lost with their node twice. */
  failed: number;
  /** Taken up again after their node failed. */
  repeated: number;
  /** Of the measured time, the first tenth left out. */
  perSecond: number;
  latency: Latency;
  /** Of all callers but the first. */
  others: Latency & { refused: number };
  /** Share of the time in which a processor, or Redis, works. */
  busy: { front: number; store: number; nodes: number; busiestNode: number };
  mostWaiting: number;
  /** What is left at the end, of anything: 0. */
  left: number;
}
