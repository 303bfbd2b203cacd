/**
 * A second copy of the system for tests and measurements: `./svc up` with a data folder of its own under the temporary
 * folder and free ports. It ends when its owner ends, however that happens. Needs root.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Instance, ROOT, resolveInstance } from "@svc/cli/instance";
import { Problem } from "@svc/cli/problem";
import { readState, type State } from "@svc/cli/supervisor/state";
import { type ComponentName, runsIn } from "@svc/cli/topology";
import { freePorts } from "./free-ports.ts";

export interface PrivateCopy {
  instance: Instance;
  /** Address of the public API, with /v1. */
  url: string;
  state: () => State;
  /** Pid of the process that runs a component; throws while it waits for its next start. */
  pid: (name: ComponentName) => number;
  supervisorPid: number;
  /** The variables that tell ./svc which copy is meant. */
  environment: Readonly<Record<string, string>>;
  /** What `./svc up` has printed so far, both streams. */
  output: () => string;
  /** Ends it by SIGTERM, removes the data folder, and answers the exit code. */
  stop: () => Promise<number>;
}

export interface PrivateCopyOptions {
  env?: Readonly<Record<string, string>>;
  args?: readonly string[];
  /** A program that runs ./svc, whose command line is appended. */
  through?: readonly string[];
}

/** Settles when the copy is ready, or throws with what `./svc up` said. */
export async function startPrivateCopy({
  env = {},
  args = ["--no-example"],
  through = [],
}: PrivateCopyOptions = {}): Promise<PrivateCopy> {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "svc-copy-")));
  chmodSync(dataDir, 0o711);
  const environment = { ...(await freePorts()), SVC_DATA_DIR: dataDir, ...env };
  const everything = { ...process.env, ...environment };
  const instance = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, everything);
  const command = ["--pdeathsig", "TERM", "--", ...through, join(ROOT, "svc"), "up", ...args];
  const child = spawn("/usr/bin/setpriv", command, {
    env: everything,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const output = collect(child);
  const exited = new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? -1)));
  const stop = async () => {
    child.kill("SIGTERM");
    const code = await exited;
    rmSync(dataDir, { recursive: true, force: true });
    return code;
  };
  const early = exited.then((code) => {
    throw new Problem(`./svc up ended with exit code ${code}`, output());
  });
  early.catch(() => undefined);
  try {
    await Promise.race([ready(child, output), early]);
  } catch (error) {
    await stop();
    throw error;
  }
  const state = () => {
    const current = readState(instance.runDir);
    if (current === undefined) throw new Problem("the private copy does not run");
    return current;
  };
  return {
    instance,
    url: `${instance.url}/v1`,
    state,
    pid: (name) => {
      const component = state().components.find((candidate) => runsIn(candidate.name, name));
      if (component?.process === undefined) throw new Problem(`${name} does not run`);
      return component.process.pid;
    },
    supervisorPid: state().supervisor.pid,
    environment,
    output,
    stop,
  };
}

function collect(child: ChildProcess): () => string {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  return () => text;
}

/** `up` prints this line last. */
function ready(child: ChildProcess, output: () => string): Promise<void> {
  return new Promise((resolve) => {
    const look = () => /^Ready: /m.test(output()) && resolve();
    child.stdout?.on("data", look);
  });
}
