/** Programs of Node and Bash, run in the two ways in which they can start: in a new process, and in one that was started ahead. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { IMAGE, type Jaild } from "@svc/test-kit/jail/jaild";
import { LIMITS } from "@svc/test-kit/jail/run";
import { finishPython as finish, type PythonJob, type Way } from "@svc/test-kit/jail/warm";
import { variables } from "@svc/test-kit/jail/zygotes";
import { JailRun } from "../../src/index.ts";

/** `argv`: after those of the command, instead of the entry file. */
export interface ParkedJob extends PythonJob {
  language?: "javascript" | "typescript" | "bash";
}

interface Runtime {
  language: string;
  entry: string;
  command: string[];
  env: Record<string, string>;
  parked?: { argv: string[]; env: Record<string, string> };
}

const { runtimes }: { runtimes: Runtime[] } = JSON.parse(
  readFileSync(join(IMAGE, "../runtimes.json"), "utf8"),
);

function runtimeOf(language: string): Runtime {
  const found = runtimes.find((runtime) => runtime.language === language);
  if (found === undefined) throw new Error(`the image has no ${language}`);
  return found;
}

/** A jail for a program of the language, in which its interpreter has been started ahead if that is wanted. */
export async function openParked(jaild: Jaild, language: string, ahead: boolean): Promise<JailRun> {
  const run = await JailRun.open(jaild.socket, new AbortController().signal);
  const { parked } = runtimeOf(language);
  if (parked === undefined) throw new Error(`no ${language} is started ahead`);
  if (ahead && !(await run.startAhead(parked.argv, variables(parked.env), LIMITS)))
    throw new Error("nothing was started");
  return run;
}

export async function describeParked(run: JailRun, job: ParkedJob): Promise<void> {
  const { command, entry, env } = runtimeOf(job.language ?? "javascript");
  const argv = [...command.slice(0, -1), ...(job.argv ?? [entry])];
  run.describe(argv, variables({ ...job.env, ...env }), { ...LIMITS, ...job.limits });
  let index = 0;
  for (const [path, text] of Object.entries(job.files)) {
    const body = Buffer.from(text);
    await run.file({ index: index++, path, size: body.length, readOnly: false }, body);
  }
  if (job.stdin !== undefined) await run.stdin(Buffer.from(job.stdin));
}

export async function runParked(jaild: Jaild, ahead: boolean, job: ParkedJob) {
  const run = await openParked(jaild, job.language ?? "javascript", ahead);
  await describeParked(run, job);
  return finish(run);
}

export async function compareParked(
  jaild: Jaild,
  job: ParkedJob,
): Promise<{ cold: Way; warm: Way; startedWarm: boolean }> {
  const [{ startedWarm: _, ...cold }, { startedWarm, ...warm }] = await Promise.all([
    runParked(jaild, false, job),
    runParked(jaild, true, job),
  ]);
  return { cold, warm, startedWarm };
}
