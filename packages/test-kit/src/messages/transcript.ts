/** What ./svc says to a person under some condition, as a text that stays the same from run to run. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { expect } from "vitest";

/** Values that differ between runs and machines. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, "TOKEN"],
  [/\bsvc_[\w-]{43}/g, "KEY"],
  [/-----BEGIN [^-]+-----.*?-----END [^-]+-----(\\n)?/gs, "PEM"],
  [/\b(token|librechat)-[0-9a-f]{8}\b/g, "$1-ID"],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME"],
  [/\b\d{4}-\d\d-\d\d\b/g, "YYYY-MM-DD"],
  [/\b[0-9a-f]{12}\b/g, "xxxxxxxxxxxx"],
  [/\bpid \d+( \(.*\))?/g, "pid N"],
  [/\b\d+\.\d+ (s|GiB)\b/g, "N $1"],
  // User ids of a copy follow from its folder.
  [/\b2\d{8}\b/g, "UID"],
  [/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT"],
  [/\bport \d+/g, "port PORT"],
  [/,\n\s+"commit": "\w+"/g, ""],
  // Steps show themselves only when they take their time.
  [/^\[\d\/\d\] .*(?:\n {6}.*)*(?:\n|$)/gm, ""],
  [/ \(commit \w+\)/g, ""],
  // What is in the image.
  [/Installed: .*\. \(/g, "Installed: LANGUAGES. ("],
];

export interface Condition {
  env?: Readonly<Record<string, string | undefined>>;
  input?: string;
  cwd?: string;
}

export class Transcript {
  readonly #names: readonly (readonly [text: string, name: string])[];
  readonly #blocks: string[] = [];

  /** `names`: what stands for texts of this run, such as folders; the first that fits counts. */
  constructor(names: Readonly<Record<string, string>> = {}) {
    this.#names = [...Object.entries(names), [ROOT, "ROOT"]];
  }

  /** Runs `./svc` with these arguments and keeps what it says. `when`: the condition, in words. Answers the exit code. */
  async run(args: readonly string[], when = "", condition: Condition = {}): Promise<number> {
    const { code, stdout, stderr } = await runSvc(args, condition);
    const words = args.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word}'`));
    const lines = [
      ...(when === "" ? [] : [`# ${when}`]),
      `$ ./svc ${words.join(" ")}`,
      ...[stdout, stderr].filter((text) => text !== "").map((text) => text.trimEnd()),
      ...(code === 0 ? [] : [`(exit code ${code})`]),
    ];
    this.#blocks.push(this.#steady(lines.join("\n")).trimEnd());
    return code;
  }

  /** Keeps what a function answers or throws. */
  async add(when: string, work: () => unknown): Promise<void> {
    let told: unknown;
    try {
      told = await work();
    } catch (error) {
      const { message, advice } = error as Error & { advice?: string };
      told = advice === undefined ? `error: ${message}` : `error: ${message}\n${advice}`;
    }
    this.#blocks.push(
      this.#steady(`# ${when}\n${typeof told === "string" ? told : JSON.stringify(told)}`).trimEnd(),
    );
  }

  /** Compares with cli/messages/NAME.txt, which `-u` renews. */
  async expectAs(name: string): Promise<void> {
    const path = join(ROOT, `cli/messages/${name}.txt`);
    await expect(`${this.#blocks.join("\n\n")}\n`).toMatchFileSnapshot(path);
  }

  #steady(text: string): string {
    const named = this.#names.reduce((all, [found, name]) => all.replaceAll(found, name), text);
    return VARYING.reduce((all, [found, name]) => all.replaceAll(found, name), named);
  }
}

/** Runs ./svc without settings of the shell that runs the test. */
export function runSvc(args: readonly string[], { env, input = "", cwd = ROOT }: Condition) {
  const own = Object.entries(process.env).filter(([name]) => !/^(SVC_|SANDBOX_|VITEST|NODE_)/.test(name));
  const options = { env: { ...Object.fromEntries(own), ...env }, cwd, maxBuffer: 64 * 2 ** 20 };
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const child = execFile(join(ROOT, "svc"), args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
    child.stdin?.end(input);
  });
}
