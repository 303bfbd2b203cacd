/** Counts the outcomes of requests and the work of the machines. */
import { percentile, sum } from "../../bench/statistics.ts";
import type { Node } from "./node.ts";
import type { Processor } from "./processor.ts";
import type { Latency, Outcome } from "./spec.ts";

/** Share of the time, at the start, that is not measured: a simulation begins idle. */
const LEFT_OUT = 0.1;

export type Count =
  | "arrived"
  | "answered"
  | "refusedBySeats"
  | "refusedByLimit"
  | "gaveUp"
  | "failed"
  | "repeated";

interface Ended {
  at: number;
  ms: number;
  principal: number;
}

export interface Machines {
  fronts: readonly Processor[];
  nodes: readonly Node[];
  storeBusyMs: () => number;
  cores: number;
}

export class Tally {
  readonly #counts: Record<Count, number> = {
    arrived: 0,
    answered: 0,
    refusedBySeats: 0,
    refusedByLimit: 0,
    gaveUp: 0,
    failed: 0,
    repeated: 0,
  };
  readonly #ended: Ended[] = [];
  #busy: Outcome["busy"] = { front: 0, store: 0, nodes: 0, busiestNode: 0 };
  #endMs = 0;
  #refusedOthers = 0;
  mostWaiting = 0;

  count(what: Count): void {
    this.#counts[what]++;
  }

  answered(ended: Ended): void {
    this.#counts.answered++;
    this.#ended.push(ended);
  }

  refused(what: "refusedBySeats" | "refusedByLimit", principal: number): void {
    this.#counts[what]++;
    if (principal > 0) this.#refusedOthers++;
  }

  /** Called at the end of arrivals: the time after it is not sustained load. */
  look(now: number, { fronts, nodes, storeBusyMs, cores }: Machines): void {
    const perNode = nodes.map(({ processor }) => processor.busyMs / (now * cores));
    const perFront = fronts.map(({ busyMs }) => busyMs / (now * cores));
    this.#endMs = now;
    this.#busy = {
      front: mean(perFront),
      store: storeBusyMs() / now,
      nodes: mean(perNode),
      busiestNode: Math.max(...perNode),
    };
  }

  outcome(left: number): Outcome {
    const from = this.#endMs * LEFT_OUT;
    const measured = this.#ended.filter(({ at }) => at >= from && at <= this.#endMs);
    const others = measured.filter(({ principal }) => principal > 0);
    return {
      ...this.#counts,
      perSecond: (measured.length / (this.#endMs - from)) * 1000,
      latency: latencyOf(measured),
      others: { ...latencyOf(others), refused: this.#refusedOthers },
      busy: this.#busy,
      mostWaiting: this.mostWaiting,
      left,
    };
  }
}

const mean = (values: readonly number[]) => (values.length === 0 ? 0 : sum(values) / values.length);

function latencyOf(ended: readonly Ended[]): Latency {
  const sorted = ended.map(({ ms }) => ms).sort((one, other) => one - other);
  return {
    p50: percentile(sorted, 0.5),
    p95: percentile(sorted, 0.95),
    p99: percentile(sorted, 0.99),
    mean: mean(sorted),
    most: sorted.at(-1) ?? 0,
  };
}
