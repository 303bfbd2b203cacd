/**
 * Boots a kernel without a root file system in QEMU, the way guests are booted. The trial succeeds when the kernel reports
 * the missing root.
 */
import { spawn } from "node:child_process";
import { type Accelerator, kernelWords, PROCESSOR, QEMU } from "./machine.ts";

export interface Trial {
  accelerator: Accelerator;
  /** Path of a vmlinuz. */
  kernel: string;
  limitMs: number;
}

export interface Result {
  /** From QEMU's start to its end. */
  ms: number;
  /** Why the kernel does not boot; undefined: it does. */
  problem?: string;
}

export type Boot = (trial: Trial) => Promise<Result>;

/** How much of the end of the console, and of QEMU's own output, is kept. */
const KEPT_BYTES = 64 * 1024;
const REACHED = "Unable to mount root fs";

export function trialCommand({ accelerator, kernel }: Omit<Trial, "limitMs">): string[] {
  return [
    ...["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", QEMU],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"],
    ...["-machine", "microvm", "-accel", accelerator, "-cpu", PROCESSOR[accelerator], "-m", "128"],
    ...["-kernel", kernel, "-append", kernelWords(accelerator).join(" ")],
    ...["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"],
  ];
}

export function bootKernel(trial: Trial): Promise<Result> {
  const [program = "", ...words] = trialCommand(trial);
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn(program, words, { cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].on("data", (bytes: Buffer) => {
        said[name] = (said[name] + bytes.toString("latin1")).slice(-KEPT_BYTES);
      });
    const limit = setTimeout(() => child.kill("SIGKILL"), trial.limitMs);
    const end = (how: string | number) => {
      clearTimeout(limit);
      const ms = performance.now() - started;
      const problem = problemOf({ how, isLate: ms >= trial.limitMs, ...said });
      resolve({ ms, ...(problem === undefined ? {} : { problem }) });
    };
    child.once("error", ({ message }) => end(message));
    child.once("close", (code, signal) => end(signal ?? code ?? 0));
  });
}

/** Pure. `how`: the exit code, the signal that ended QEMU, or why there was no process. */
export function problemOf(end: {
  how: string | number;
  isLate: boolean;
  stdout: string;
  stderr: string;
}): string | undefined {
  if (end.how === 0 && end.stdout.includes(REACHED)) return undefined;
  if (end.isLate) return "a kernel hangs in it";
  const reason = linesOf(end.stderr).at(0) ?? lastWords(linesOf(end.stdout));
  return `QEMU ended with ${end.how}${reason === undefined ? "" : `: ${reason.slice(0, 200)}`}`;
}

const linesOf = (text: string) =>
  text
    .replace(/[^\x20-\x7e\n]/g, "")
    .split("\n")
    .filter((line) => line !== "");

/** For the output of a kernel: the reason of its panic, or else its last line. */
const lastWords = (lines: readonly string[]) =>
  lines.find((line) => line.includes("Kernel panic")) ?? lines.at(-1);
