/**
 * The bare commands: the same programs of the same image without any service, and the host's own Python. Started by a
 * small C program, because a start from Node costs milliseconds by itself; its own cost shows in the row `true`.
 */
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { HELLO, PANDAS, PLOT } from "./scenarios.ts";

export interface BareCommand {
  name: string;
  where: "image" | "host";
  command: readonly string[];
}

/** A program of several lines has to fit into one line of the spawner's input. */
const oneLine = (program: string): string => `exec(${JSON.stringify(program)})`;

export const BARE: readonly BareCommand[] = [
  { name: "true", where: "image", command: ["/usr/bin/true"] },
  { name: "python", where: "image", command: ["/usr/bin/python3", "-c", HELLO.python] },
  { name: "bash", where: "image", command: ["/usr/bin/bash", "-c", HELLO.bash] },
  { name: "node", where: "image", command: ["/usr/bin/node", "-e", HELLO.javascript] },
  { name: "pandas", where: "image", command: ["/usr/bin/python3", "-c", oneLine(PANDAS)] },
  { name: "plot", where: "image", command: ["/usr/bin/python3", "-c", oneLine(PLOT)] },
  { name: "host-python", where: "host", command: ["/usr/bin/python3", "-c", HELLO.python] },
];

export interface BareSample {
  wallMs: number;
  cpuMs: number;
}

/** The variables of the service's programs, as far as they affect speed. Bare programs can write only to /tmp. */
export const ENVIRONMENT = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: "/tmp",
  LANG: "C.UTF-8",
  OMP_NUM_THREADS: "1",
} as const;

const SOURCE = fileURLToPath(new URL("./spawner.c", import.meta.url));
const SEPARATOR = "\u001f";

/** Compiles the spawner into the given file. */
export function buildSpawner(file: string): string {
  execFileSync("gcc", ["-O2", "-Wall", "-Wextra", "-Werror", SOURCE, "-o", file], { stdio: "inherit" });
  return file;
}

export class Spawner {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  /** Commands are started with exactly this environment. */
  constructor(program: string, root: string, env: Readonly<Record<string, string>>) {
    this.#process = spawn(program, [root], { stdio: ["pipe", "pipe", "inherit"], env });
    this.#lines = createInterface({ input: this.#process.stdout });
  }

  run(command: readonly string[]): Promise<BareSample> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error("the spawner ended"));
      this.#process.once("exit", ended);
      this.#lines.once("line", (line) => {
        this.#process.off("exit", ended);
        const [wallNs = 0, cpuUs = 0, status = -1] = line.split(" ").map(Number);
        if (status !== 0) reject(new Error(`${command[0]} ended with status ${status}`));
        else resolve({ wallMs: wallNs / 1e6, cpuMs: cpuUs / 1e3 });
      });
      this.#process.stdin.write(`${command.join(SEPARATOR)}\n`);
    });
  }

  close(): void {
    this.#process.stdin.end();
  }
}
