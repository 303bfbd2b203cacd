/** A component in a process of its own for a test, on any free loopback port, from its bundle as a copy runs it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { bundleOf, NODE } from "@svc/cli/components";
import { buildBundles } from "@svc/cli/install/bundles";
import type { ServiceProcess } from "@svc/cli/topology";

export interface RunningComponent {
  url: string;
  pid: number;
  /** Its log so far. */
  lines: readonly string[];
  kill: (signal?: NodeJS.Signals) => Promise<void>;
}

/** Of the sources as they are; asked for once in each test file. */
let bundles: Promise<void> | undefined;

/** The bundle of a component, made anew when its sources have changed. */
export async function builtBundle(name: ServiceProcess): Promise<string> {
  bundles ??= buildBundles();
  await bundles;
  return bundleOf(name);
}

/**
 * Starts a component with exactly the given environment and waits until it says that it is running; `listening` is earlier, where it waits
 * for what it needs. `through`: a program that becomes the command line after it.
 */
export async function startComponent(
  name: ServiceProcess,
  env: Record<string, string>,
  until: "running" | "listening" = "running",
  through: readonly string[] = [],
): Promise<RunningComponent> {
  const [program = NODE, ...words] = [...through, NODE, await builtBundle(name)];
  const child = spawn(program, words, {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  const url = await addressOf(child, until, lines);
  return {
    url,
    pid: pidOf(child),
    lines,
    kill: async (signal = "SIGKILL") => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, "exit");
    },
  };
}

/** Adds what the component logs to the lines, until it ends. */
async function addressOf(
  { stdout }: ChildProcess,
  until: "running" | "listening",
  lines: string[],
): Promise<string> {
  if (stdout === null) throw new Error("the component has no log");
  const started = Promise.withResolvers<string>();
  let url: string | undefined;
  createInterface({ input: stdout })
    .on("line", (line) => {
      lines.push(line);
      url ??= /Server listening at (https?:[^\s"]+)/.exec(line)?.[1];
      if (url !== undefined && (until === "listening" || line.includes('"msg":"running"')))
        started.resolve(url);
    })
    .once("close", () => started.reject(new Error("the component did not start")));
  return started.promise;
}

/** The number of a started process; never 0, which would mean the tests' own process group to kill(2). */
export function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error("the process did not start");
  return child.pid;
}
