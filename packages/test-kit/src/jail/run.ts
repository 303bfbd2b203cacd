/** One run in a test's jail, from staging to the listing, in one call. */
import { type JailLimits, JailRun, type RunOutcome, type RunPause, type TaskState } from "@svc/jail-client";
import type { Jaild } from "./jaild.ts";
import { mode } from "./mode.ts";
import { slow } from "./slowness.ts";
import { variables, ZYGOTES } from "./zygotes.ts";

export const LIMITS: JailLimits = {
  wallMs: slow(20_000),
  cpuMs: 0,
  memoryBytes: 512 << 20,
  processes: 256,
  openFiles: 2048,
  fileBytes: 100 << 20,
  stdoutCap: 65_536,
  stderrCap: 65_536,
  killFactor: 64,
};

const PYTHON = "/usr/bin/python3";

export interface Job {
  argv: readonly string[];
  env?: readonly string[];
  files?: Record<string, string | Buffer>;
  readOnly?: Record<string, string | Buffer>;
  directories?: readonly string[];
  /** Path and target of each. */
  symlinks?: Record<string, string | Buffer>;
  /** Of files and directories, by path. */
  modes?: Record<string, number>;
  /** Lists hidden directories, all directories and symlinks too. */
  listEverything?: boolean;
  stdin?: string | Buffer;
  limits?: Partial<JailLimits>;
  signal?: AbortSignal;
}

export interface Finished extends RunOutcome {
  out: string;
  err: string;
  /** Path and state of each listed file. */
  files: Record<string, string>;
  run: JailRun;
}

/** Stages a job; indices of inputs count files, then read-only files, then directories. */
export async function stage(jaild: Jaild, job: Job): Promise<JailRun> {
  const run = await JailRun.open(jaild.socket, job.signal ?? new AbortController().signal);
  if (mode.warm && job.argv[0] === PYTHON) await run.warm("python");
  await stageIn(run, job);
  return run;
}

export async function stageIn(run: JailRun, job: Job): Promise<void> {
  run.describe(job.argv, job.env ?? ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/mnt/data"], {
    ...LIMITS,
    ...job.limits,
  });
  const modeOf = (path: string) => (job.modes?.[path] === undefined ? {} : { mode: job.modes[path] });
  if (job.listEverything) run.listEverything();
  let index = 0;
  for (const readOnly of [false, true]) {
    for (const [path, text] of Object.entries((readOnly ? job.readOnly : job.files) ?? {})) {
      const body = Buffer.from(text);
      await run.file({ index: index++, path, size: body.length, readOnly, ...modeOf(path) }, body);
    }
  }
  for (const [path, target] of Object.entries(job.symlinks ?? {})) await run.symlink(path, target);
  for (const path of job.directories ?? []) await run.directory(index++, path, job.modes?.[path]);
  if (job.stdin !== undefined) await run.stdin(Buffer.from(job.stdin));
}

/** Runs a job and leaves its connection open, for fetches; the caller closes it. */
export async function runOpen(jaild: Jaild, job: Job): Promise<Finished> {
  const run = await stage(jaild, job);
  try {
    await run.start();
    const outcome = await run.outcome();
    const files = Object.fromEntries(
      outcome.listing.files.map((file) => [file.path.toString("latin1"), file.state]),
    );
    return { ...outcome, out: outcome.stdout.toString(), err: outcome.stderr.toString(), files, run };
  } catch (error) {
    run.close();
    throw error;
  }
}

export async function bytesOf(run: JailRun, number: number): Promise<Buffer | undefined> {
  const fetched = await run.fetch(number);
  if (fetched === undefined) return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of fetched.body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function runJob(jaild: Jaild, job: Job): Promise<Finished> {
  const finished = await runOpen(jaild, job);
  finished.run.close();
  return finished;
}

export function bash(jaild: Jaild, script: string, job: Partial<Job> = {}): Promise<Finished> {
  return runJob(jaild, { argv: ["/bin/bash", "-c", script], ...job });
}

/** Runs a Python program that may use probe.py and returns what it printed as JSON. */
export async function python<T>(jaild: Jaild, program: string, job: Partial<Job> = {}): Promise<T> {
  const finished = await runJob(
    jaild,
    mode.warm ? asFile(program, job) : { argv: [PYTHON, "-c", program], ...job },
  );
  if (finished.end.cause !== "exited" || finished.end.exitCode !== 0) {
    throw new Error(`probe failed: ${JSON.stringify(finished.end)} ${finished.err}`);
  }
  return JSON.parse(finished.out) as T;
}

/** The same as a file that removes itself, in the environment of a program: what starts warm. */
function asFile(program: string, job: Partial<Job>): Job {
  return {
    ...job,
    argv: [PYTHON, "main.py"],
    env: variables(ZYGOTES[0]?.env ?? {}),
    files: { ...job.files, "main.py": `import os; os.unlink(__file__)\n${program}` },
  };
}

export async function started(jaild: Jaild, job: Job): Promise<JailRun> {
  const run = await stage(jaild, job);
  await run.start();
  return run;
}

/** Asks until the program is in the state, twice in a row. */
export async function settled(run: JailRun, state: TaskState, ms = 10_000): Promise<void> {
  const deadline = performance.now() + slow(ms);
  for (let seen = 0; seen < 2; ) {
    const now = await run.query();
    seen = now === state ? seen + 1 : 0;
    if (seen < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    if (performance.now() > deadline) throw new Error(`not in time: the program is ${state}, but ${now}`);
  }
}

/** Stops a program that has not ended. */
export async function paused(run: JailRun): Promise<RunPause> {
  const pause = await run.pause();
  if (pause === undefined) throw new Error("the program has ended");
  return pause;
}
