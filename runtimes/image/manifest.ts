/**
 * Prints runtimes.json of a built image: manifest.ts ROOT IMAGE_HASH PACKAGES RUNTIME_FOLDER...
 *
 * Asks each runtime inside the image for its version, so a runtime that does not start is found when the image is built.
 * Run as root by the build; trusts the runtime folders. Programs of the image run without rights (lib/inside).
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface RuntimeFile {
  language: string;
  entry: string;
  command: string[];
  env: Record<string, string>;
  /** Compiles the program before it starts; absent where sources are run as they are. */
  compile?: { command: string[]; env: Record<string, string> };
  /** How a program that has tools is started; absent where there is no prelude for them. */
  programmatic?: { command: string[]; env: Record<string, string> };
  /** How a program of a session is started, so that the next one gets its variables; absent where variables are not kept. */
  session?: { command: string[]; env: Record<string, string> };
  /** Fork servers of the interpreter. A program uses the last one of those whose words it contains. */
  zygotes?: {
    name: string;
    script: string;
    words?: string[];
    /** Programs that have tools can take it, whatever their words. */
    programmatic?: true;
    /** Programs of a session can take it, whatever their words. */
    session?: true;
  }[];
  /**
   * Programs without arguments may begin in a pre-started interpreter, which gets the variables of `env`. `least` of them wait on an
   * idle machine; one that was used is replaced after `refillMs`.
   */
  prestarted?: { least: number; refillMs: number; env?: Record<string, string> };
  /** A command whose output contains the version. */
  version: string[];
}

const readJson = <T>(...path: string[]): T => JSON.parse(readFileSync(join(...path), "utf8"));

const [root, image, packages, ...folders] = process.argv.slice(2);
if (root === undefined || image === undefined || packages === undefined)
  throw new Error("usage: manifest.ts ROOT IMAGE_HASH PACKAGES RUNTIME_FOLDER...");

const environment = readJson<Record<string, string>>(import.meta.dirname, "environment.json");

function probeVersion(command: string[]): string {
  const inside = join(import.meta.dirname, "lib/inside");
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const output = execFileSync(inside, [root as string, "/usr/bin/env", ...variables, ...command], {
    encoding: "utf8",
  }).trim();
  const found = /\d+(?:\.\d+)+/.exec(output);
  if (found === null) throw new Error(`${command[0]} printed no version: ${output}`);
  // Version ranges need three numbers.
  return [...found[0].split("."), "0"].slice(0, 3).join(".");
}

/** Lines of a list that the setup scripts left in the image; a runtime without one has none. */
function installed(list: string): string[] {
  const file = join(root as string, "usr/lib/svc/installed", list);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

const packagesOf = (language: string) =>
  installed(language).map((line) => {
    const [name, version] = line.split(" ");
    return { name, version };
  });

const runtimes = folders.map((folder) => {
  const { language, entry, command, env, version, compile, programmatic, session, zygotes, prestarted } =
    readJson<RuntimeFile>(folder, "runtime.json");
  const argv = command.map((part) => part.replaceAll("{entry}", entry));
  return {
    language,
    command,
    env: { ...environment, ...env },
    version: probeVersion(version),
    entry,
    packages: packagesOf(language),
    ...(compile && { compile: { ...compile, env: { ...environment, ...compile.env } } }),
    ...(zygotes && {
      zygotes: zygotes.map(({ name, script, words = [], ...rest }) => ({
        name,
        script,
        words,
        ...rest,
        argv,
      })),
    }),
    ...(prestarted && {
      prestarted: { ...prestarted, argv, env: { ...environment, ...env, ...prestarted.env } },
    }),
    ...(programmatic && {
      programmatic: { ...programmatic, env: { ...environment, ...env, ...programmatic.env } },
    }),
    ...(session && { session: { ...session, env: { ...environment, ...env, ...session.env } } }),
  };
});

console.log(
  JSON.stringify(
    { image, packages: packages.split(",").filter(Boolean), commands: installed("commands"), runtimes },
    null,
    2,
  ),
);
