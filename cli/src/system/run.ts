/** Runs a tool to its end, passes on its output line by line, and keeps the last lines for the message of a failure. */
import { type SpawnOptions, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Problem } from "../problem.ts";
import { exitCodeOf } from "./process.ts";

const TAIL_LINES = 25;

export interface Finished {
  code: number;
  tail: string[];
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string | undefined>;
  onLine?: (line: string) => void;
}

/** Does not throw for a non-zero exit. The code is 127 when the program cannot be started, and 128 + n after signal n. */
export function run(command: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const [file = "", ...args] = command;
  const settings: SpawnOptions = { stdio: ["ignore", "pipe", "pipe"] };
  if (options.cwd !== undefined) settings.cwd = options.cwd;
  if (options.env !== undefined) settings.env = options.env;
  return new Promise((resolve) => {
    const child = spawn(file, args, settings);
    const tail: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        tail.push(line);
        if (tail.length > TAIL_LINES) tail.shift();
        options.onLine?.(line);
      });
    }
    child.once("error", (error) => resolve({ code: 127, tail: [error.message] }));
    child.once("close", (code, signal) => resolve({ code: code ?? exitCodeOf(signal ?? "SIGTERM"), tail }));
  });
}

/** Like `run`, but a non-zero exit throws a Problem with the last lines of the output. */
export async function mustRun(
  command: readonly string[],
  what: string,
  options: RunOptions = {},
): Promise<void> {
  const { code, tail } = await run(command, options);
  if (code === 0) return;
  throw new Problem(
    `${what} failed (exit code ${code})`,
    [...tail, "", `To repeat it: ${shown(command)}`].join("\n"),
  );
}

/** A command as a person would type it. */
export function shown(command: readonly string[]): string {
  return command
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}
