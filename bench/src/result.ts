/** The result of a run: the numbers together with the conditions without which they mean nothing. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import type { FileRow } from "./files/measure.ts";
import type { CpuRow, LoadRow } from "./measure.ts";
import type { PausedRow } from "./programmatic/paused.ts";
import type { Summary } from "./statistics.ts";

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

export interface Result {
  version: 1;
  date: string;
  command: string;
  /** How programs are started. */
  mode: string;
  n: number;
  conditions: Conditions;
  /** Milliseconds of the commands without a service. */
  bare: Record<string, Summary>;
  bareCpuMs: Record<string, number>;
  /** Milliseconds of the requests of one client. */
  scenarios: Record<string, Summary>;
  loads: LoadRow[];
  cpu: CpuRow[];
  /** The file path against a bare server; absent in results that did not measure it. */
  files?: FileRow[];
  /** Paused programs; absent in results that did not measure them. */
  paused?: PausedRow[];
  idleMemoryMib: Record<string, number>;
}

/** Asked before anything is started. */
export function loadOfMachine(): number {
  return Number((loadavg()[0] ?? 0).toFixed(2));
}

export function readConditions(packagesDir: string, system: string, loadBefore: number): Conditions {
  const processors = cpus();
  const manifest = JSON.parse(readFileSync(join(packagesDir, "runtimes.json"), "utf8")) as {
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

export function readResult(path: string): Result {
  const result = JSON.parse(readFileSync(path, "utf8")) as Result;
  if (result.version !== 1) throw new RangeError(`${path} is no result of this version`);
  return result;
}
