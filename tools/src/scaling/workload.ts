/** The load on the service, and the cost of one average request of it. Pure. */
import { type Cost, type Costs, plus, scaled } from "./costs.ts";

export interface Workload {
  perSecond: number;
  /** Kinds of requests, relative to each other; `tools`: programs with `calls` calls. */
  mix: Readonly<Record<string, number>>;
  /** Processor milliseconds of a program beyond its kind's, and milliseconds in which it waits in its slot. */
  ownMs: number;
  waitMs: number;
  /** Files of each run beyond those of its kind, and their size. */
  inputs: number;
  outputs: number;
  fileMib: number;
  /** Calls of each program with tools, one after the other, and the pause at each. */
  calls: number;
  pauseMs: number;
}

export const TOOLS = "tools";

export const USUAL: Workload = {
  perSecond: 10,
  mix: { "hello-python": 40, pandas: 30, plot: 15, "hello-javascript": 5, tools: 10 },
  ownMs: 0,
  waitMs: 0,
  inputs: 0,
  outputs: 0,
  fileMib: 0,
  calls: 3,
  pauseMs: 2000,
};

const isRun = (name: string) => !/^(upload|download)-/.test(name);

/** One request of a kind with the workload's calls, files and own time. */
export function costOfKind(costs: Costs, workload: Workload, name: string): Cost {
  const kind = name === TOOLS ? plus(costs.tools, scaled(costs.call, workload.calls)) : costs.kinds[name];
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return isRun(name) ? plus(kind, extraOf(costs, workload)) : kind;
}

/** What the workload adds to every run. */
export function extraOf(costs: Costs, { inputs, outputs, fileMib, ownMs }: Workload): Cost {
  const files = plus(scaled(costs.input, inputs), scaled(costs.output, outputs));
  const all = plus(files, scaled(costs.mib, (inputs + outputs) * fileMib));
  const cpuMs = { ...all.cpuMs, jaild: all.cpuMs.jaild + ownMs };
  return { ...all, cpuMs, laterMs: 0, idleMs: 0, stored: outputs, read: inputs };
}

export function averageCost(costs: Costs, workload: Workload): Cost {
  const total = Object.values(workload.mix).reduce((sum, share) => sum + share, 0);
  const parts = Object.entries(workload.mix).map(([name, share]) =>
    scaled(costOfKind(costs, workload, name), share / total),
  );
  return parts.reduce(plus);
}

export function shareOf({ mix }: Workload, which: (name: string) => boolean): number {
  const total = Object.values(mix).reduce((sum, share) => sum + share, 0);
  const some = Object.entries(mix).filter(([name]) => which(name));
  return some.reduce((sum, [, share]) => sum + share, 0) / total;
}

export const shareOfRuns = (workload: Workload) => shareOf(workload, isRun);
