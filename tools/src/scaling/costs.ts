/**
 * The cost of one request, by component: the coefficients of the model. All come from measurements in the repository:
 * bench/results/ and, for one factor, docs/performance.md. Nothing here is assumed.
 */
import type { Result } from "../bench/result.ts";
import { sum } from "../bench/statistics.ts";
import type { Accounts, KindAccount } from "./measure/result.ts";

/** Components that are one process in local mode. */
export const FRONT = ["api", "egress-gateway", "file-server", "tool-call-server"] as const;
const COMBINED = [...FRONT, "worker"] as const;
export const COMPONENTS = [...COMBINED, "runner", "jaild", "redis"] as const;
export type Component = (typeof COMPONENTS)[number];

const HOPS = ["api", "runner", "egress-gateway", "file-server"] as const;
export type Hop = (typeof HOPS)[number];

/** Of one request, or of one more call, file or MiB of it. */
export interface Cost {
  /** Processor milliseconds. jaild's include the jails and programs. */
  cpuMs: Readonly<Record<Component, number>>;
  /** Processor milliseconds that no caller waits for: the next jail, removals. Part of jaild's. */
  laterMs: number;
  /** Milliseconds in which the caller waits and no processor of ours works. */
  idleMs: number;
  commands: number;
  storeBytes: number;
  /** Bytes in Redis times the seconds that they stay. */
  byteSeconds: number;
  /** Traffic in both directions between a component and its callers. */
  bytes: Readonly<Record<Hop, number>>;
  /** Files of the object store. */
  stored: number;
  read: number;
}

/** Processor time of five components as five processes, and as one: docs/performance.md, "one process for five components". */
export const SEPARATE_MS = 7.6;
export const COMBINED_MS = 5.4;

/** `separate`: a process for each component, as between machines and with authentication. */
export type Topology = "combined" | "separate";

export interface Costs {
  kinds: Readonly<Record<string, Cost>>;
  /** A program with tools without its calls, and each of its calls, one after the other. */
  tools: Cost;
  call: Cost;
  /** One more input file of 30 kB, one more output file of 1 kB. */
  input: Cost;
  output: Cost;
  /** One more MiB of a file that is read or written. */
  mib: Cost;
}

const FILES: Readonly<Record<string, { stored?: number; read?: number }>> = {
  plot: { stored: 1 },
  "file-out": { stored: 1 },
  "files-in": { read: 10 },
  "upload-1mb": { stored: 1 },
  "download-1mb": { read: 1 },
};
/** Calls of the longest program whose connections were counted. */
const CALLS = 20;
const INPUTS = 10;
const MORE_MIB = 19;

export function costsOf(quiet: Result, accounts: Accounts, topology: Topology): Costs {
  const of = (name: string) => costOf(quiet, accounts, topology, name);
  const kinds = Object.fromEntries(
    accounts.kinds
      .map(({ name }) => name)
      .filter((name) => !name.startsWith("calls-"))
      .map((name) => [name, of(name)]),
  );
  const hello = of("hello-python");
  const call = scaled(less(of(`calls-${CALLS}`), of("calls-1")), 1 / (CALLS - 1));
  return {
    kinds,
    tools: less(of("calls-1"), call),
    call,
    input: scaled(less(of("files-in"), hello), 1 / INPUTS),
    output: less(of("file-out"), hello),
    mib: mibOf(quiet, of("download-1mb")),
  };
}

function costOf(quiet: Result, accounts: Accounts, topology: Topology, name: string): Cost {
  const row = quiet.modes.warm?.cpu.find((each) => each.name === name);
  const latency = quiet.modes.warm?.scenarios[name];
  const account = accounts.kinds.find((each) => each.name === name);
  if (row === undefined || latency === undefined || account === undefined)
    throw new Error(`the results tell nothing of ${name}`);
  const { redis = 0, jaild = 0, runner = 0, combined = 0 } = row.components;
  const { stored = 0, read = 0 } = FILES[name] ?? {};
  return {
    cpuMs: { redis, jaild, runner, ...shared(combined, account, topology) },
    laterMs: Math.min(Math.max(0, row.total - latency.p50), jaild),
    idleMs: Math.max(0, latency.p50 - row.total),
    commands: account.redis.commands,
    storeBytes: account.redis.inBytes + account.redis.outBytes,
    byteSeconds: account.redis.byteSeconds,
    bytes: byHop((hop) => Math.max(0, account.bytes[hop] ?? 0)),
    stored,
    read,
  };
}

/**
 * Divides the time of the one process of five components in the proportions of the measurement in which each has a process
 * of its own.
 */
function shared(combined: number, account: KindAccount, topology: Topology) {
  const total = sum(COMBINED.map((name) => account.cpuMs[name] ?? 0));
  const factor = topology === "separate" ? SEPARATE_MS / COMBINED_MS : 1;
  const of = (name: (typeof COMBINED)[number]) =>
    total === 0 ? 0 : (combined * factor * (account.cpuMs[name] ?? 0)) / total;
  return {
    api: of("api"),
    worker: of("worker"),
    "egress-gateway": of("egress-gateway"),
    "file-server": of("file-server"),
    "tool-call-server": of("tool-call-server"),
  };
}

/**
 * Derived from downloads, whose bytes cross two components, as the bytes of inputs do. One more MiB adds one MiB of traffic
 * on each hop.
 */
function mibOf(quiet: Result, one: Cost): Cost {
  const total = (name: string) => quiet.modes.warm?.cpu.find((row) => row.name === name)?.total ?? 0;
  const perMib = (total("download-20mb") - total("download-1mb")) / MORE_MIB;
  const both = one.cpuMs.api + one.cpuMs["file-server"];
  const none = scaled(one, 0);
  return {
    ...none,
    cpuMs: {
      ...none.cpuMs,
      "egress-gateway": (perMib * one.cpuMs.api) / both,
      "file-server": (perMib * one.cpuMs["file-server"]) / both,
    },
    bytes: { ...none.bytes, "egress-gateway": 2 ** 20, "file-server": 2 ** 20 },
  };
}

const byHop = (of: (hop: Hop) => number) =>
  Object.fromEntries(HOPS.map((hop) => [hop, of(hop)])) as Record<Hop, number>;
const byComponent = (of: (name: Component) => number) =>
  Object.fromEntries(COMPONENTS.map((name) => [name, of(name)])) as Record<Component, number>;

function combine(left: Cost, right: Cost, merge: (one: number, other: number) => number): Cost {
  return {
    cpuMs: byComponent((name) => merge(left.cpuMs[name], right.cpuMs[name])),
    laterMs: merge(left.laterMs, right.laterMs),
    idleMs: merge(left.idleMs, right.idleMs),
    commands: merge(left.commands, right.commands),
    storeBytes: merge(left.storeBytes, right.storeBytes),
    byteSeconds: merge(left.byteSeconds, right.byteSeconds),
    bytes: byHop((hop) => merge(left.bytes[hop], right.bytes[hop])),
    stored: merge(left.stored, right.stored),
    read: merge(left.read, right.read),
  };
}

export const plus = (left: Cost, right: Cost): Cost => combine(left, right, (one, other) => one + other);
export const scaled = (cost: Cost, factor: number): Cost => combine(cost, cost, (one) => one * factor);
/** The cost of the first beyond the second; zero where noise makes that negative. */
const less = (left: Cost, right: Cost): Cost =>
  combine(left, right, (one, other) => Math.max(0, one - other));

/** Where each coefficient comes from. */
export const SOURCES: readonly (readonly [coefficient: string, source: string])[] = [
  [
    "processor time of redis, jaild, runner and the five other components together",
    "`bench/results/quiet.json`, `modes.warm.cpu`",
  ],
  [
    "how the five divide it; commands, bytes and life of keys in Redis; bytes between components",
    "`bench/results/accounts.json`, `kinds`",
  ],
  [
    `five processes take ${SEPARATE_MS} ms where one takes ${COMBINED_MS}`,
    "[performance.md](performance.md), one process for five components",
  ],
  [
    "what no caller waits for: processor time beyond p50 of one request at a time",
    "`bench/results/quiet.json`, `modes.warm.scenarios`",
  ],
  ["a further call: (20 calls - 1 call) / 19", "`bench/results/quiet.json`, `calls-20` and `calls-1`"],
  [
    "a further MiB: (download of 20 MiB - of 1 MiB) / 19",
    "`bench/results/quiet.json`, `download-20mb` and `download-1mb`",
  ],
  [
    "memory of a runner machine, and of one more pandas program",
    "`bench/results/quiet.json`, `modes.warm.memory`",
  ],
  ["memory of one more paused program", "`bench/results/quiet.json`, `modes.warm.paused`"],
  ["memory of a slot at worst, and what jails get of a machine", "`cli/src/capacity.ts`"],
];
