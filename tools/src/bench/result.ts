/** The result of a run: the numbers together with the conditions without which they mean nothing. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";
import type { FileRow } from "./files/measure.ts";
import type { BurstRow, LoadRow } from "./loads.ts";
import type { CpuRow } from "./measure.ts";
import type { MemoryRow } from "./memory.ts";
import type { PausedRow } from "./programmatic/paused.ts";
import type { SessionRow } from "./sessions/measure.ts";
import type { Mode } from "./settings.ts";
import type { Summary, Window } from "./statistics.ts";

export interface Conditions {
  cpu: string;
  cores: number;
  memoryGib: number;
  kernel: string;
  system: string;
  node: string;
  runtimes: Record<string, string>;
  commit: string;
  /** Load average of the last minute before the run: what else the machine was doing. */
  loadBefore: number;
}

export const BUSY = "The machine did other work: these numbers are no measure of the service.";

/** Whether other work was waiting for the machine's processors when the run began. */
export const isBusy = ({ loadBefore, cores }: Pick<Conditions, "loadBefore" | "cores">): boolean =>
  loadBefore > cores;

/** Milliseconds of one request at a time. */
export interface Latencies {
  /** Commands without a service, taken in turn with the scenarios that are compared with them. */
  bare: Record<string, Summary>;
  scenarios: Record<string, Summary>;
  /** hello-python in turn with programs with tools; absent where these were not by themselves. */
  helloBesideTools?: Summary;
}

/** The measurements of one copy in one mode, each kind by itself. What was not chosen is empty or absent. */
export interface Measured extends Latencies {
  bareCpuMs: Record<string, number>;
  /** Each kind in between all others; with warm starts only. */
  mixed?: Latencies;
  /** Milliseconds of the first requests after the start, all of them hello-python. */
  afterStart?: Window[];
  cpu: CpuRow[];
  loads: LoadRow[];
  burst?: BurstRow;
  memory?: MemoryRow;
  /** The file path against a bare server. */
  files?: FileRow[];
  /** Paused programs. */
  paused?: PausedRow[];
  /** What sessions add to a run. */
  sessions?: SessionRow[];
}

/** Versions of the format of each kind of result. */
export const VERSIONS = { bench: 4, soak: 3, overload: 2 } as const;

/** The origin of every result: when, how and under which conditions it was measured. */
export interface Origin {
  date: string;
  command: string;
  /** How long the whole took. */
  seconds: number;
  conditions: Conditions;
}

export interface Result extends Origin {
  version: typeof VERSIONS.bench;
  kind: "bench";
  n: number;
  /** Variables of the copies that differ from their defaults, by mode. */
  settings: Partial<Record<Mode, Record<string, string>>>;
  modes: Partial<Record<Mode, Measured>>;
}

/** Called before anything is started. */
export function loadOfMachine(): number {
  return Number((loadavg()[0] ?? 0).toFixed(2));
}

export function readConditions(image: string, system: string, loadBefore: number): Conditions {
  const processors = cpus();
  const manifest = JSON.parse(readFileSync(join(image, "runtimes.json"), "utf8")) as {
    runtimes: { language: string; version: string }[];
  };
  return {
    cpu: processors[0]?.model.trim() ?? "unknown",
    cores: processors.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    system,
    node: process.version,
    runtimes: Object.fromEntries(manifest.runtimes.map(({ language, version }) => [language, version])),
    commit:
      git(["rev-parse", "--short=12", "HEAD"]) +
      (git(["status", "--porcelain"]) === "" ? "" : " with changes"),
    loadBefore,
  };
}

function git(args: readonly string[]): string {
  try {
    return execFileSync("git", ["-C", ROOT, ...args], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}

/** Reads a result of this kind; undefined: of any kind, which its `kind` tells. */
export function readResult<T extends Origin & { kind: keyof typeof VERSIONS; version: number }>(
  path: string,
  kind?: T["kind"],
): T {
  const result = JSON.parse(readFileSync(path, "utf8")) as T;
  if (result.version !== VERSIONS[result.kind] || (kind ?? result.kind) !== result.kind) {
    throw new Problem(
      `${path} is no result of ${kind ?? "a bench"} of this version`,
      undefined,
      USAGE_EXIT_CODE,
    );
  }
  return result;
}

/** JSON with every list of numbers on one line. */
export function asJson(result: Origin): string {
  const text = JSON.stringify(result, undefined, 2);
  return `${text.replace(/\[\n\s+(-?[\d.e+-]+(?:,\n\s+-?[\d.e+-]+)*)\n\s+\]/g, (_, list: string) => `[${list.replace(/\s+/g, " ")}]`)}\n`;
}

export function writeResult(path: string, result: Origin): void {
  mkdirSync(dirname(resolve(path)), { recursive: true });
  writeFileSync(path, asJson(result));
}
