/** A component in a process of its own for a test, on any free loopback port. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface RunningComponent {
  url: string;
  pid: number;
  kill: (signal?: NodeJS.Signals) => Promise<void>;
}

/**
 * Starts `main` with exactly the given environment and waits until it says that it is running; `listening` is earlier, where it waits
 * for what it needs.
 */
export async function startComponent(
  main: string,
  env: Record<string, string>,
  until: "running" | "listening" = "running",
): Promise<RunningComponent> {
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await addressOf(child, until);
  return {
    url,
    pid: pidOf(child),
    kill: async (signal = "SIGKILL") => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, "exit");
    },
  };
}

async function addressOf(child: ChildProcess, until: "running" | "listening"): Promise<string> {
  if (child.stdout === null) throw new Error("the component has no log");
  let url: string | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const text = (JSON.parse(line) as { msg: string }).msg;
    url ??= /Server listening at (http:\S+)/.exec(text)?.[1];
    if (text === "running" || (until === "listening" && url !== undefined)) break;
  }
  child.stdout.resume();
  if (url === undefined) throw new Error("the component did not start");
  return url;
}

/** The number of a started process; never 0, which would mean the tests' own process group to kill(2). */
export function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error("the process did not start");
  return child.pid;
}
