/**
 * Prints runtimes.json of a built image: manifest.ts ROOT IMAGE_HASH RUNTIME_FOLDER...
 *
 * Asks each runtime inside the image for its version, so a runtime that does not start is found when the image is built.
 * Run as root by the build; trusts the runtime folders.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface RuntimeFile {
  language: string;
  entry: string;
  command: string[];
  env: Record<string, string>;
  /** How a program that has tools is started; absent where there is no prelude for them. */
  programmatic?: { command: string[]; env: Record<string, string> };
  /** Command that prints the version. */
  version: string[];
}

const readJson = <T>(...path: string[]): T => JSON.parse(readFileSync(join(...path), "utf8"));

const [root, image, ...folders] = process.argv.slice(2);
if (root === undefined || image === undefined)
  throw new Error("usage: manifest.ts ROOT IMAGE_HASH RUNTIME_FOLDER...");

const environment = readJson<Record<string, string>>(import.meta.dirname, "environment.json");

function probeVersion(command: string[]): string {
  const output = execFileSync("/usr/sbin/chroot", [root as string, ...command], {
    env: environment,
    encoding: "utf8",
  }).trim();
  if (!/^\d+(\.\d+)+$/.test(output)) throw new Error(`${command[0]} printed no version: ${output}`);
  return output;
}

const runtimes = folders.map((folder) => {
  const { language, entry, command, env, version, programmatic } = readJson<RuntimeFile>(
    folder,
    "runtime.json",
  );
  return {
    language,
    command,
    env: { ...environment, ...env },
    version: probeVersion(version),
    entry,
    ...(programmatic && {
      programmatic: { ...programmatic, env: { ...environment, ...env, ...programmatic.env } },
    }),
  };
});

console.log(JSON.stringify({ image, runtimes }, null, 2));
