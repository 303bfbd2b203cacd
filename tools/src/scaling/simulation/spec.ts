/** The input of the simulation, and its outcome. Times in milliseconds. */
import type { PoolSpec } from "./pool.ts";
import type { Distribution } from "./random.ts";

/** Processor time of one round of a run. */
export interface Round {
  /** API, gateway, file server and tool call server. */
  front: number;
  /** Redis. */
  store: number;
  /** Worker, runner, jaild and program, before the answer. 0: the request runs no program, like an upload. */
  node: number;
}

export interface SimulatedKind {
  name: string;
  /** Relative to those of the others. */
  share: number;
  first: Round;
  /** For each call of a tool. */
  further: Round;
  /** Calls of one program, one after the other, with a pause of `pauseMs` at each. */
  calls: number;
  pauseMs: number;
  /** Time in its slot without use of a processor. */
  waitMs: number;
  pool: PoolSpec | undefined;
}

/** `rate`: Poisson arrivals. `clients`: each sends its next request when it has its answer; only for specs that refuse nothing. */
export type Arrivals =
  | { type: "rate"; perSecond: number; seconds: number }
  | { type: "clients"; clients: number; requests: number };

export interface ClusterSpec {
  seed: number;
  nodes: number;
  cores: number;
  /** Of each node. */
  slots: number;
  /** Machines of the API and the components beside it; 0: they are on the first node, and so is Redis. */
  fronts: number;
  kinds: readonly SimulatedKind[];
  /** Distribution of a program's processor time, relative to the mean. */
  variation: Distribution;
  arrivals: Arrivals;
  /** The number of callers; each request belongs to one of them at random. */
  principals: number;
  /** SVC_MAX_CONCURRENT_EXECUTIONS; 0: no limit. */
  seats: number;
  /** JOB_QUEUE_LIMIT of all API processes together; 0: no limit. */
  limit: number;
  /** JOB_QUEUE_WAIT_MS. */
  queueWaitMs: number;
  /** Nodes that are away for a while and lose their work. */
  failures?: readonly { node: number; atMs: number; forMs: number }[];
  /** The share of requests that come from one caller, the first. */
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
  /** 503: the API has `limit` executions in hand. */
  refusedByLimit: number;
  /** 503: the run waited too long. */
  gaveUp: number;
  /** Lost with their node twice. */
  failed: number;
  /** Taken up again after their node failed. */
  repeated: number;
  /** Over the measured time, without its first tenth. */
  perSecond: number;
  latency: Latency;
  /** Of all callers but the first. */
  others: Latency & { refused: number };
  /** Share of the time in which a processor, or Redis, works. */
  busy: { front: number; store: number; nodes: number; busiestNode: number };
  mostWaiting: number;
  /** Work of any kind that is left at the end: must be 0. */
  left: number;
}
