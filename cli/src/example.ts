/**
 * The example that ends `up`: it sends a CSV file, and gets a table on stdout and a picture, all through the public API.
 * Then it prints the same requests as curl commands that work as they are.
 */
import { openAsBlob } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { Client } from "./client.ts";
import { type Instance, ROOT } from "./instance.ts";
import { Problem } from "./problem.ts";
import { svcLine } from "./svc-line.ts";
import { shown } from "./system/run.ts";

const FOLDER = join(ROOT, "cli/example");
const INPUT = "sales.csv";
const PROGRAM = "report.py";
const OUTPUT = "plot.png";

export interface ExampleResult {
  stdout: string;
  plotPath: string;
  seconds: number;
  curl: { title: string; command: string }[];
}

/** `token`: set when the API demands one. `words`: shell words that stand for the token in the printed commands. */
export async function runExample(
  instance: Instance,
  { token, words }: { token?: string | undefined; words: string | undefined },
): Promise<ExampleResult> {
  const client = new Client(instance.url, { token, whenUnreachable: "See: ./svc status" });
  const inputs = await client.upload([{ name: INPUT, content: await openAsBlob(join(FOLDER, INPUT)) }]);
  const request = {
    lang: "py",
    code: await readFile(join(FOLDER, PROGRAM), "utf8"),
    files: inputs.map(({ id, storage_session_id }) => ({ id, storage_session_id, name: INPUT })),
  };
  const start = performance.now();
  const result = await client.exec(request);
  const seconds = (performance.now() - start) / 1000;
  const plot = result.files.find((file) => file.name === OUTPUT);
  if (result.code !== 0 || plot === undefined) {
    const said = `${result.stdout}${result.stderr}`.trimEnd();
    throw new Problem(
      `the example ended with exit code ${result.code}${plot === undefined ? ` and without ${OUTPUT}` : ""}`,
      [said, "./svc up --no-example starts without it. ./svc doctor checks this machine."]
        .filter(Boolean)
        .join("\n"),
    );
  }
  const folder = join(instance.dataDir, "example");
  await mkdir(folder, { recursive: true });
  const plotPath = join(folder, OUTPUT);
  const requestPath = join(folder, "request.json");
  await writeFile(plotPath, await client.download(plot));
  await writeFile(requestPath, `${JSON.stringify(request, undefined, 2)}\n`);
  return {
    stdout: result.stdout,
    plotPath,
    seconds,
    curl: curlCommands(instance.url, words, requestPath, plot),
  };
}

function curlCommands(
  url: string,
  words: string | undefined,
  requestPath: string,
  plot: { id: string; storage_session_id: string },
): ExampleResult["curl"] {
  const json = "-H 'Content-Type: application/json'";
  const to = (path: string) => `${url}/v1${path}${authorization(words)}`;
  return [
    { title: "say hello", command: helloCommand(url, words) },
    { title: "upload the CSV", command: `curl -s ${to("/upload")} -F file=@${quoted(join(FOLDER, INPUT))}` },
    {
      title: "run the example (program and file ids)",
      command: `curl -s ${to("/exec")} ${json} -d @${quoted(requestPath)}`,
    },
    {
      title: "download the plot",
      command: `curl -s -o plot.png ${to(`/download/${plot.storage_session_id}/${plot.id}`)}`,
    },
  ];
}

/** The one request that the README shows. `words`: what stands for a credential in the shell's line. */
export function helloCommand(url: string, words: string | undefined): string {
  return `curl -s ${url}/v1/exec${authorization(words)} -H 'Content-Type: application/json' -d '{"lang":"py","code":"print(6*7)"}'`;
}

/** The example as one command. */
export function exampleCommand(words: string | undefined): string {
  const [program, input] = [PROGRAM, INPUT].map((name) => quoted(join(FOLDER, name)));
  const token = words === undefined ? "" : `SVC_TOKEN="${words}" `;
  return `${token}${svcLine(`exec ${program} --in ${input} --out .`)}`;
}

function authorization(words: string | undefined): string {
  return words === undefined ? "" : ` -H "Authorization: Bearer ${words}"`;
}

/**
 * Relative to the working directory, unless the file lies outside it. The printed command is to be typed in the same folder.
 */
function quoted(path: string): string {
  const near = relative(process.cwd(), path);
  return shown([near.startsWith("..") ? path : near]);
}
