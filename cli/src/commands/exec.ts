/** `./svc exec`: one program through the public API, with files in and out. Starts nothing. */
import { openAsBlob } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { text } from "node:stream/consumers";
import { Client, type ExecRequest, type ExecResult } from "../client.ts";
import { defineCommand } from "../command.ts";
import { languageOf } from "../exec/language.ts";
import { saveOutput } from "../exec/save.ts";
import { INSTANCE_OPTIONS, resolveInstance } from "../instance.ts";
import { wholeNumber } from "../options.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { readState } from "../supervisor/state.ts";

const OPTIONS = {
  lang: { short: "l", value: "LANG", doc: "Language; default: by the extension of FILE." },
  in: {
    short: "i",
    value: "FILE",
    many: true,
    doc: "Input file; it lies in the working directory of the program. FILE:NAME renames it.",
  },
  out: { short: "o", value: "DIR", doc: "Save the output files here." },
  force: { short: "f", doc: "Replace files that exist already." },
  timeout: { short: "t", value: "MS", doc: "Time limit of the run in milliseconds." },
  arg: { short: "a", value: "ARG", many: true, doc: "Argument of the program (also: everything after --)." },
  stdin: { value: "FILE", doc: "Standard input of the program; - is ours." },
  url: { value: "URL", doc: "Address of the service; default: the copy on this machine." },
  json: { doc: "Print the service's answer as JSON instead of the program's output." },
  ...INSTANCE_OPTIONS,
} as const;

export const exec = defineCommand({
  usage: "exec [FILE|-] [--in FILE…] [--out DIR] [-- ARG…]",
  positionals: "[FILE...]",
  summary: "Runs a program in a jail: its output becomes ours, its exit code too.",
  details: `
Examples:
  ./svc exec plot.py --in data.csv --out .
  echo 'echo "$USER on $(hostname)"' | ./svc exec --lang bash
  ./svc exec job.py --timeout 5000 -- first second

Exit codes: the program's own; 128 + n when a signal ended it (137 also for a limit of time, memory or output);
1 when the service refused or cannot be reached; 2 when the command line is wrong.`,
  options: OPTIONS,
  run: async ({ values, positionals, rest }) => {
    if (positionals.length > 1)
      throw new Problem(
        `unexpected argument ${positionals[1]}`,
        "Arguments of the program follow after --.",
        USAGE_EXIT_CODE,
      );
    const file = programFile(positionals[0]);
    if (file === "-" && values.stdin === "-")
      throw new Problem("both program and input cannot come from standard input", undefined, USAGE_EXIT_CODE);
    const lang = values.lang ?? languageOf(file);
    if (lang === undefined)
      throw new Problem("which language?", "Give --lang py, bash, js, ts, …", USAGE_EXIT_CODE);
    const timeout =
      values.timeout === undefined ? undefined : wholeNumber("timeout", values.timeout, 1, 86_400_000);
    const request: ExecRequest = {
      lang,
      code: await readText(file),
      args: [...values.arg, ...rest],
      ...(values.stdin === undefined ? {} : { stdin: await readText(values.stdin) }),
      ...(timeout === undefined ? {} : { run_timeout: timeout }),
    };
    const client = new Client(values.url ?? localUrl(values));
    const inputs = await Promise.all(values.in.map(openInput));
    if (inputs.length > 0) request.files = await client.upload(inputs);
    const result = await client.exec(request);
    if (values.json) process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
    else await show(result);
    await saveOutputs(client, result, values.out, values.force);
    return result.code;
  },
});

function programFile(argument: string | undefined): string {
  if (argument !== undefined) return argument;
  if (process.stdin.isTTY) throw new Problem("no program given", "See: ./svc exec --help", USAGE_EXIT_CODE);
  return "-";
}

/** The running copy of the data folder knows its own address. */
function localUrl(values: { "data-dir": string | undefined; "port-offset": string | undefined }): string {
  const instance = resolveInstance(values, process.env);
  return readState(instance.runDir)?.url ?? instance.url;
}

async function readText(path: string): Promise<string> {
  if (path === "-") return text(process.stdin);
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function openInput(argument: string): Promise<{ name: string; content: Blob }> {
  const { path, name } = await splitInput(argument);
  try {
    return { name, content: await openAsBlob(path) };
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** `data/a.csv` is `a.csv` inside; `data/a.csv:in/b.csv` is `in/b.csv`. A file whose own name has a colon wins. */
async function splitInput(argument: string): Promise<{ path: string; name: string }> {
  const colon = argument.lastIndexOf(":");
  const whole = await stat(argument).catch(() => undefined);
  if (whole?.isDirectory())
    throw new Problem(`${argument} is a folder; --in takes files`, undefined, USAGE_EXIT_CODE);
  if (whole !== undefined || colon < 1) return { path: argument, name: basename(argument) };
  return { path: argument.slice(0, colon), name: argument.slice(colon + 1) };
}

function unreadable(path: string, error: unknown): Problem {
  const { code } = error as NodeJS.ErrnoException;
  return new Problem(`cannot read ${path}${code === "ENOENT" ? ": there is no such file" : ` (${code})`}`);
}

async function show(result: ExecResult): Promise<void> {
  await write(process.stdout, result.stdout);
  await write(process.stderr, result.stderr);
}

function write(stream: NodeJS.WriteStream, content: string): Promise<void> {
  return new Promise((resolve) => stream.write(content, () => resolve()));
}

async function saveOutputs(
  client: Client,
  result: ExecResult,
  out: string | undefined,
  force: boolean,
): Promise<void> {
  const outputs = result.files.filter(
    (file) => file.inherited !== true && !/(^|\/)\.dirkeep$/.test(file.name),
  );
  if (out === undefined) {
    if (outputs.length > 0) {
      const names = outputs.map(({ name }) => JSON.stringify(name)).join(", ");
      process.stderr.write(`svc: output files not saved (use --out DIR): ${names}\n`);
    }
    return;
  }
  for (const file of outputs) {
    const path = await saveOutput(out, file.name, await client.download(file), force);
    process.stderr.write(`svc: saved ${path}\n`);
  }
}
