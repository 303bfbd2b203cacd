/** Python programs, run in the three ways in which they can start: in a new interpreter and in copies of each zygote. */
import type { EndCause, JailLimits } from "@svc/jail-client";
import { JailRun } from "@svc/jail-client";
import type { Jaild } from "./jaild.ts";
import { LIMITS } from "./run.ts";
import { slow } from "./slowness.ts";
import { NAMES, variables, ZYGOTES } from "./zygotes.ts";

export interface PythonJob {
  files: Record<string, string>;
  /** After the interpreter. */
  argv?: readonly string[];
  /** Variables beyond every program's, before them. */
  env?: Record<string, string>;
  stdin?: string;
  limits?: Partial<JailLimits>;
}

export interface Way {
  out: string;
  err: string;
  cause: EndCause;
  exitCode: number;
  signal: number;
  execErrno: number;
  files: Record<string, string>;
}

const own = ZYGOTES[0]?.env ?? {};

/** As many interpreters as there are ways load pandas and draw side by side, on a machine that does other things too. */
const WALL_MS = slow(60_000);

/** A jail for a job, warm when a zygote is named. */
export async function openPython(jaild: Jaild, zygote: string | undefined): Promise<JailRun> {
  const run = await JailRun.open(jaild.socket, new AbortController().signal);
  if (zygote !== undefined && !(await run.warm(zygote))) throw new Error(`no ${zygote} zygote`);
  return run;
}

export async function describePython(run: JailRun, job: PythonJob): Promise<void> {
  const argv = ["/usr/bin/python3", ...(job.argv ?? ["main.py"])];
  run.describe(argv, variables({ ...job.env, ...own }), { ...LIMITS, wallMs: WALL_MS, ...job.limits });
  let index = 0;
  for (const [path, text] of Object.entries(job.files)) {
    const body = Buffer.from(text);
    await run.file({ index: index++, path, size: body.length, readOnly: false }, body);
  }
  if (job.stdin !== undefined) await run.stdin(Buffer.from(job.stdin));
}

export async function finishPython(run: JailRun): Promise<Way & { startedWarm: boolean }> {
  try {
    await run.start();
    const { end, stdout, stderr, listing } = await run.outcome();
    return {
      out: stdout.toString(),
      err: stderr.toString(),
      cause: end.cause,
      exitCode: end.exitCode,
      signal: end.signal,
      execErrno: end.execErrno,
      files: Object.fromEntries(listing.files.map(({ path, state }) => [path.toString(), state])),
      startedWarm: run.startedWarm,
    };
  } finally {
    run.close();
  }
}

export async function runPython(jaild: Jaild, zygote: string | undefined, job: PythonJob) {
  const run = await openPython(jaild, zygote);
  await describePython(run, job);
  return finishPython(run);
}

export interface Compared {
  cold: Way;
  warm: Record<string, Way>;
  /** Which of the zygotes' copies became the program themselves. */
  startedWarm: string[];
}

export async function compare(jaild: Jaild, job: PythonJob): Promise<Compared> {
  const [cold, ...copies] = await Promise.all(
    [undefined, ...NAMES].map(async (name) => {
      const { startedWarm, ...way } = await runPython(jaild, name, job);
      return { name: name ?? "", way, startedWarm };
    }),
  );
  if (cold === undefined) throw new Error("nothing ran");
  return {
    cold: cold.way,
    warm: Object.fromEntries(copies.map(({ name, way }) => [name, way])),
    startedWarm: copies.filter(({ startedWarm }) => startedWarm).map(({ name }) => name),
  };
}
