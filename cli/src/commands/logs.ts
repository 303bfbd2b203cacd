/**
 * `./svc logs`: prints the log lines of all components, ordered by time. It only reads files, so it also works when the copy
 * does not run.
 */

import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { defineCommand } from "../command.ts";
import { INSTANCE_OPTIONS, type Instance, resolveInstance } from "../instance.ts";
import { lastRecords, mergedRecords, type Source } from "../logs/files.ts";
import { LogFollower } from "../logs/follower.ts";
import { jsonOf, type LogRecord, recordOf, textOf } from "../logs/record.ts";
import { RequestFilter } from "../logs/request.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { suggestion } from "../suggestion.ts";
import { logPath } from "../supervisor/logs.ts";
import { svcLine } from "../svc-line.ts";
import { sleep } from "../system/process.ts";
import { continueAsRoot } from "../system/root.ts";
import { paint } from "../terminal.ts";
import { SERVICE_PROCESSES } from "../topology.ts";

/** In the order in which a request passes through them. */
const LOGS: readonly string[] = [...SERVICE_PROCESSES, "jaild", "redis", "supervisor"];
const FOLLOW_EVERY_MS = 250;
/** The number of earlier lines that are shown before new lines are followed. */
const PAST_LINES = 20;
const FLUSH_CHARS = 64 * 1024;

const OPTIONS = {
  follow: { short: "f", doc: "Show the last lines, then new ones as they come." },
  request: { value: "ID", doc: "Only the lines of this request, in every component (X-Request-Id)." },
  json: { doc: "Print the lines as they are in the files: JSON, one object each." },
  ...INSTANCE_OPTIONS,
} as const;

export const logs = defineCommand({
  usage: "logs [-f] [--request ID] [COMPONENT...]",
  positionals: "[COMPONENT...]",
  words: LOGS,
  summary: "Shows what the components log, also when nothing runs.",
  details: `
Components: ${LOGS.join(", ")}; default: all of them.
Examples:
  ./svc logs -f worker runner
  ./svc logs --request 2f6c1c1e-…     what became of a request, by the request_id of its answer
  ./svc logs --json api | jq 'select(.status >= 500)'

Exit codes: 0; 1 when no line of the request is there.`,
  options: OPTIONS,
  run: async ({ values, positionals }) => {
    const components = chosen(positionals);
    const filter = values.request === undefined ? undefined : filterOf(values.request);
    const instance = resolveInstance(values, process.env);
    const asRoot = await readable(instance);
    if (asRoot !== undefined) return asRoot;
    const output = new Output(values.json ? jsonOf : text);
    const { logsDir } = instance;
    const followed = components.map((name) => ({ name, log: new LogFollower(logPath(logsDir, name)) }));
    const sources = followed.map(({ name, log }) => ({ component: name, limit: log.offset }));
    const found = await showPast(logsDir, sources, filter, values.follow, output);
    if (values.follow) await follow(followed, filter, output);
    if (found || filter === undefined) return 0;
    console.error(`No line of the request ${values.request} in ${logsDir}.`);
    return 1;
  },
});

function chosen(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !LOGS.includes(name));
  if (unknown === undefined) return names.length === 0 ? LOGS : names;
  const near = suggestion(unknown, LOGS);
  const text = `there is no component ${JSON.stringify(unknown)}`;
  if (near !== undefined) throw new Problem(`${text}; did you mean ${near}?`, undefined, USAGE_EXIT_CODE);
  throw new Problem(text, `Components: ${LOGS.join(", ")}.`, USAGE_EXIT_CODE);
}

function filterOf(id: string): RequestFilter {
  if (/^[A-Za-z0-9._:-]{1,128}$/.test(id)) return new RequestFilter(id);
  throw new Problem(
    `${JSON.stringify(id)} cannot be the id of a request`,
    "It is the request_id of an error, or the X-Request-Id of any answer.",
    USAGE_EXIT_CODE,
  );
}

/** The log folder belongs to root. When the command had to continue as root, returns the exit code of that run. */
async function readable({ logsDir, dataDir }: Instance): Promise<number | undefined> {
  try {
    accessSync(logsDir, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") {
      return continueAsRoot(process.argv.slice(2), "reading the logs");
    }
    throw new Problem(`there are no logs in ${dataDir}`, `${svcLine("up -d")} writes them.`);
  }
}

/**
 * Returns whether a line was found. Before following, only the last lines are shown, unless they are filtered by request.
 */
async function showPast(
  logsDir: string,
  sources: readonly Source[],
  filter: RequestFilter | undefined,
  follows: boolean,
  output: Output,
): Promise<boolean> {
  const chosen = () => mergedRecords(logsDir, sources, filter && ((line) => filter.mayConcern(line)));
  if (filter !== undefined) for (const record of chosen()) filter.learn(record);
  const isTail = follows && filter === undefined;
  let found = false;
  for (const record of isTail ? lastRecords(logsDir, sources, PAST_LINES) : chosen()) {
    if (filter?.isMeant(record) === false) continue;
    found = true;
    await output.show(record);
  }
  await output.flush();
  return found;
}

async function follow(
  followed: readonly { name: string; log: LogFollower }[],
  filter: RequestFilter | undefined,
  output: Output,
): Promise<never> {
  for (;;) {
    await sleep(FOLLOW_EVERY_MS);
    const now = Date.now();
    const records = followed.flatMap(({ name, log }) => log.read().map((line) => recordOf(name, line, now)));
    records.sort((one, other) => one.time - other.time);
    for (const record of records) filter?.learn(record);
    for (const record of records) if (filter?.isMeant(record) !== false) await output.show(record);
    await output.flush();
  }
}

const text = (record: LogRecord) => textOf(record, (colour, part) => paint(process.stdout, colour, part));

/** Writes to standard output in larger pieces, no faster than the reader takes them. */
class Output {
  readonly #write: (record: LogRecord) => string;
  #waiting = "";

  constructor(write: (record: LogRecord) => string) {
    this.#write = write;
  }

  async show(record: LogRecord): Promise<void> {
    this.#waiting += `${this.#write(record)}\n`;
    if (this.#waiting.length > FLUSH_CHARS) await this.flush();
  }

  async flush(): Promise<void> {
    const piece = this.#waiting;
    this.#waiting = "";
    if (piece !== "" && !process.stdout.write(piece)) await once(process.stdout, "drain");
  }
}
