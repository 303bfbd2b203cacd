/** `./svc exec`: runs one program through the public API, with files in and out. Starts no component. */
import { LANGUAGES } from "@svc/contracts/languages";
import { Client, type ExecRequest, type ExecResult } from "../client.ts";
import { defineCommand } from "../command.ts";
import { openInput, readText } from "../exec/files.ts";
import { languageOf } from "../exec/language.ts";
import { type Program, programOf, STANDARD_INPUT } from "../exec/program.ts";
import { saveOutput } from "../exec/save.ts";
import { sessionName, sessionNotes } from "../exec/session.ts";
import { INSTANCE_OPTIONS } from "../instance.ts";
import { meantAddress, whenUnreachable } from "../meant-address.ts";
import { type Values, wholeNumber } from "../options.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { printJson } from "../terminal.ts";

const OPTIONS = {
  code: { short: "c", value: "CODE", anyText: true, doc: "The program itself, in place of FILE." },
  lang: {
    short: "l",
    value: "LANG",
    words: LANGUAGES.map(({ lang }) => lang),
    doc: "Language; default: by the extension of FILE, Python for CODE and standard input.",
  },
  in: {
    short: "i",
    value: "FILE",
    many: true,
    doc: "Input file; it lies in the working directory of the program. FILE:NAME renames it.",
  },
  out: { short: "o", value: "DIR", doc: "Save the output files here." },
  force: { short: "f", doc: "Replace files that exist already." },
  timeout: { short: "t", value: "MS", doc: "Time limit of the run in milliseconds." },
  arg: {
    short: "a",
    value: "ARG",
    many: true,
    anyText: true,
    doc: "Argument of the program (also: everything after --).",
  },
  stdin: { value: "FILE", doc: "Standard input of the program; -: that of this command." },
  session: {
    short: "s",
    value: "NAME",
    doc: "Continue this session: its files, and in Python its variables (docs/sessions.md).",
  },
  url: { value: "URL", doc: "Address of the service; default: the copy on this machine." },
  token: {
    value: "TOKEN",
    doc: "JWT or API key for a service that wants one (SVC_TOKEN, which others cannot see).",
  },
  json: { doc: "Print the service's answer as JSON instead of the program's output." },
  ...INSTANCE_OPTIONS,
} as const;

export const exec = defineCommand({
  usage: "exec [FILE|-|-c CODE] [--in FILE…] [--out DIR] [-- ARG…]",
  positionals: "[FILE...]",
  summary: "Runs a program in a jail, prints its output as it comes, and exits with its exit code.",
  details: `
Examples:
  ./svc exec plot.py --in data.csv --out .
  ./svc exec -c 'print(6*7)'
  echo 'echo "$USER on $(hostname)"' | ./svc exec --lang bash
  ./svc exec job.py --timeout 5000 -- first second
  ./svc exec -c 'n = 42' --session draft && ./svc exec -c 'print(n)' --session draft
  SVC_TOKEN=… ./svc exec job.py --url https://code.example.com

Exit codes: the program's own; 128 + n when a signal ended it (137 also for a limit of time, memory or output);
1 when the service refused or cannot be reached; 2 when the command line is wrong.`,
  options: OPTIONS,
  run: async ({ values, positionals, rest }) => {
    const session = values.session === undefined ? undefined : sessionName(values.session);
    const program = programOf(values, positionals, process.stdin.isTTY);
    const client = new Client(meantAddress(values), {
      token: values.token ?? (process.env.SVC_TOKEN || undefined),
      whenUnreachable: whenUnreachable(values),
    });
    const request = await requestOf(program, values, rest);
    if (session !== undefined) request.runtime_session_hint = session;
    const inputs = await Promise.all(values.in.map(openInput));
    if (inputs.length > 0) request.files = await client.upload(inputs);
    const result = values.json ? await client.exec(request) : await client.follow(request, write);
    if (values.json) printJson(result);
    if (session !== undefined)
      for (const note of sessionNotes(session, result)) process.stderr.write(`svc: ${note}\n`);
    await saveOutputs(client, result, values.out, values.force);
    return result.code;
  },
});

async function requestOf(
  program: Program,
  values: Values<typeof OPTIONS>,
  rest: readonly string[],
): Promise<ExecRequest> {
  const code = "code" in program ? program.code : await readProgram(program.path);
  const lang = values.lang ?? languageOf(program);
  if (lang === undefined)
    throw new Problem("which language?", "Give --lang py, bash, js, ts, …", USAGE_EXIT_CODE);
  const timeout =
    values.timeout === undefined ? undefined : wholeNumber("timeout", values.timeout, 1, 86_400_000);
  return {
    lang,
    code,
    args: [...values.arg, ...rest],
    ...(values.stdin === undefined ? {} : { stdin: await readText(values.stdin) }),
    ...(timeout === undefined ? {} : { run_timeout: timeout }),
  };
}

async function readProgram(path: string): Promise<string> {
  const code = await readText(path);
  if (path !== STANDARD_INPUT || code !== "") return code;
  throw new Problem("no program given: standard input is empty", "See: ./svc exec --help", USAGE_EXIT_CODE);
}

function write(stream: "stdout" | "stderr", text: string): Promise<void> {
  return new Promise((resolve) => process[stream].write(text, () => resolve()));
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
