/** Runs programs of Node and Bash in a new process and in a pre-started one, and compares both. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { IMAGE, type Jaild } from "@svc/test-kit/jail/jaild";
import { LIMITS } from "@svc/test-kit/jail/run";
import { finishPython as finish, type PythonJob, type Way } from "@svc/test-kit/jail/warm";
import { variables } from "@svc/test-kit/jail/zygotes";
import { JailRun } from "../../src/index.ts";

/** `argv`: arguments after the command's own, instead of the entry file. */
export interface PrestartedJob extends PythonJob {
  language?: "javascript" | "typescript" | "bash";
}

interface Runtime {
  language: string;
  entry: string;
  command: string[];
  env: Record<string, string>;
  prestarted?: { argv: string[]; env: Record<string, string> };
}

const { runtimes }: { runtimes: Runtime[] } = JSON.parse(
  readFileSync(join(IMAGE, "../runtimes.json"), "utf8"),
);

function runtimeOf(language: string): Runtime {
  const found = runtimes.find((runtime) => runtime.language === language);
  if (found === undefined) throw new Error(`the image has no ${language}`);
  return found;
}

export function prestartedOf(language: string): NonNullable<Runtime["prestarted"]> {
  const { prestarted } = runtimeOf(language);
  if (prestarted === undefined) throw new Error(`no ${language} is pre-started`);
  return prestarted;
}

/** A jail for a program of the language, with a pre-started interpreter if wanted. */
export async function openPrestarted(jaild: Jaild, language: string, prestart: boolean): Promise<JailRun> {
  const run = await JailRun.open(jaild.socket, new AbortController().signal);
  const { argv, env } = prestartedOf(language);
  if (prestart && !(await run.prestart(argv, variables(env), LIMITS))) throw new Error("nothing was started");
  return run;
}

export async function describePrestarted(run: JailRun, job: PrestartedJob): Promise<void> {
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

export async function runPrestarted(jaild: Jaild, prestart: boolean, job: PrestartedJob) {
  const run = await openPrestarted(jaild, job.language ?? "javascript", prestart);
  await describePrestarted(run, job);
  return finish(run);
}

export async function comparePrestarted(
  jaild: Jaild,
  job: PrestartedJob,
): Promise<{ cold: Way; warm: Way; startedWarm: boolean }> {
  const [{ startedWarm: _, ...cold }, { startedWarm, ...warm }] = await Promise.all([
    runPrestarted(jaild, false, job),
    runPrestarted(jaild, true, job),
  ]);
  return { cold, warm, startedWarm };
}
