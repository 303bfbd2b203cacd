/** Tables of a soak: its first tenth beside its last, and values that must not have grown. Pure. */
import { sum } from "../statistics.ts";
import { ms, type Table } from "../table.ts";
import type { Held } from "./held.ts";
import type { SoakResult, Tenth } from "./run.ts";

/** How much slower the last tenth may be. */
const SLOWER = 1.3;
/** Slack where memory is given back in pages. */
const MEMORY = { factor: 1.1, mib: 8 };
/** Connections that are kept for a next request. */
const POOLED = 16;

interface Check {
  what: string;
  first: number;
  last: number;
  most: number;
  digits: number;
}

export function soakTables(result: SoakResult): Table[] {
  return [checkTable(result), tenthTable(result), kindTable(result), errorTable(result)].filter(
    ({ rows }) => rows.length > 0,
  );
}

/** True when nothing has grown, nothing has become slower, and every answer was right. */
export function isSteady(result: SoakResult): boolean {
  return checksOf(result).every(isKept);
}

const isKept = ({ last, most }: Check) => last <= most;

function checksOf({ tenths }: SoakResult): Check[] {
  const [first, last] = [tenths[0], tenths.at(-1)];
  if (first === undefined || last === undefined) throw new Error("a soak has ten tenths");
  const count = (what: string, of: (held: Held) => number, more = 0): Check => {
    const [was, is] = [of(first.held), of(last.held)];
    return { what, first: was, last: is, most: was + more, digits: 0 };
  };
  const mib = (what: string, of: (held: Held) => number): Check => {
    const [was, is] = [of(first.held), of(last.held)];
    return { what, first: was, last: is, most: was * MEMORY.factor + MEMORY.mib, digits: 1 };
  };
  const names = Object.keys(last.held.memoryMib);
  return [
    {
      what: "wrong or failed answers, all tenths",
      first: first.errors,
      last: sum(tenths.map(({ errors }) => errors)),
      most: 0,
      digits: 0,
    },
    {
      what: "p99 in ms",
      first: first.latency.p99,
      last: last.latency.p99,
      most: first.latency.p99 * SLOWER,
      digits: 1,
    },
    mib("memory of all components, MiB", (held) => total(needed(held))),
    ...names.map((name) => mib(`memory of ${name}, MiB`, (held) => needed(held)[name] ?? 0)),
    ...names.map((name) => count(`descriptors of ${name}`, (held) => held.descriptors[name] ?? 0, POOLED)),
    count("processes", ({ processes }) => processes),
    count("cgroups", ({ cgroups }) => cgroups),
    count("mounts", ({ mounts }) => mounts),
    count("namespaces", ({ namespaces }) => namespaces),
    count("network namespaces", ({ networkNamespaces }) => networkNamespaces),
    count("files beside stored objects", ({ files }) => files),
    count("keys in Redis that never expire", ({ redis }) => redis.lastingKeys),
  ];
}

/** Memory by component, without what Redis keeps only for a time: that grows until its first keys expire. */
const needed = ({ memoryMib, redis }: Held): Record<string, number> => ({
  ...memoryMib,
  ...(memoryMib.redis === undefined ? {} : { redis: memoryMib.redis - redis.passingMib }),
});

export const total = (byName: Readonly<Record<string, number>>): number => sum(Object.values(byName));

function checkTable(result: SoakResult): Table {
  return {
    title: "Soak: the first tenth against the last",
    note: `${result.runs} runs of all kinds, ${result.concurrency} at a time, in ${result.mode} mode. What is held is counted after each tenth, when nothing runs and garbage is collected. Redis counts without what it keeps for a time only: grants of ended runs for two hours, ended jobs for two minutes. p99 is that of all kinds whose time is the service's.`,
    head: ["what", "first", "last", "at most", "kept"],
    rows: checksOf(result).map((check) => {
      const { what, first, last, most, digits } = check;
      return [
        what,
        ...[first, last, most].map((value) => value.toFixed(digits)),
        isKept(check) ? "yes" : "NO",
      ];
    }),
  };
}

function tenthTable({ start, tenths }: SoakResult): Table {
  const heldCells = ({ memoryMib, descriptors, cgroups, networkNamespaces, redis }: Held) => [
    total(memoryMib).toFixed(0),
    String(total(descriptors)),
    String(cgroups),
    String(networkNamespaces),
    redis.passingMib.toFixed(1),
    String(redis.keys),
  ];
  return {
    title: "Soak: tenth by tenth",
    note: "What is held, after each tenth; first row: before the first run.",
    head: [
      ...["tenth", "runs", "per second", "p50", "p99", "errors"],
      ...["MiB", "descriptors", "cgroups", "network namespaces", "MiB that expire", "Redis keys"],
    ],
    rows: [
      ["0", "0", "", "", "", "", ...heldCells(start)],
      ...tenths.map(({ runs, perSecond, latency, errors, held }, index) => [
        String(index + 1),
        String(runs),
        perSecond.toFixed(1),
        ms(latency.p50),
        ms(latency.p99),
        String(errors),
        ...heldCells(held),
      ]),
    ],
  };
}

function kindTable({ tenths }: SoakResult): Table {
  const latencyIn = (tenth: Tenth | undefined, name: string) => tenth?.kinds[name];
  return {
    title: "Soak: kinds of runs",
    note: "Milliseconds in the first and in the last tenth. Time limits and abandoned requests take the time that they are meant to take.",
    head: ["kind", "n in a tenth", "p50 first", "p50 last", "p99 first", "p99 last"],
    rows: Object.keys(tenths[0]?.kinds ?? {}).map((name) => {
      const [first, last] = [latencyIn(tenths[0], name), latencyIn(tenths.at(-1), name)];
      const cells = [first?.p50, last?.p50, first?.p99, last?.p99].map((value) => ms(value ?? 0));
      return [name, String(first?.n ?? 0), ...cells];
    }),
  };
}

function errorTable({ errors }: SoakResult): Table {
  return {
    title: "Soak: errors",
    note: "The first of them.",
    head: ["error"],
    rows: errors.map((error) => [error.replaceAll("|", "\\|").replaceAll("\n", " ")]),
  };
}
