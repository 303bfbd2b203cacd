/** The zygotes of the image, as jaild's options name them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

interface Runtime {
  language: string;
  version: string;
  env: Record<string, string>;
  zygotes?: { name: string; script: string; argv: string[] }[];
}

const packages = fileURLToPath(new URL("../../../../.pkgs", import.meta.url));
const manifest: { runtimes: Runtime[] } = JSON.parse(readFileSync(join(packages, "runtimes.json"), "utf8"));

export const ZYGOTES = manifest.runtimes.flatMap(({ env, zygotes = [] }) =>
  zygotes.map((zygote) => ({ ...zygote, env })),
);

/** Like `3.13`. */
export const PYTHON_SERIES = manifest.runtimes
  .find(({ language }) => language === "python")
  ?.version.replace(/\.\d+$/, "");

export const NAMES = ZYGOTES.map(({ name }) => name);

export const variables = (env: Record<string, string>) =>
  Object.entries(env).map(([name, value]) => `${name}=${value}`);

export function zygoteArguments(names: readonly string[]): string[] {
  return ZYGOTES.filter(({ name }) => names.includes(name)).flatMap(({ name, script, argv, env }) => [
    ...["--zygote", name, "--zygote-script", script],
    ...argv.flatMap((word) => ["--zygote-argument", word]),
    ...variables(env).flatMap((variable) => ["--zygote-variable", variable]),
  ]);
}
