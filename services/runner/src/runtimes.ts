/** The installed runtimes, as the image's manifest lists them. Read once at start; a broken manifest stops the runner. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findLanguage, LANGUAGES, type RuntimeInfo, ServiceError } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import semver from "semver";
import { z } from "zod";

const manifestSchema = z.object({
  image: z.string(),
  runtimes: z.array(
    z.object({
      language: z.string(),
      version: z.string(),
      entry: z.string(),
      command: z.array(z.string()).min(1),
      env: z.record(z.string(), z.string()),
      /** How a program that has tools is started instead; absent when the language cannot have them. */
      programmatic: z
        .object({ command: z.array(z.string()).min(1), env: z.record(z.string(), z.string()) })
        .optional(),
    }),
  ),
});
export type Runtime = z.infer<typeof manifestSchema>["runtimes"][number];

export class Runtimes {
  readonly #runtimes: readonly Runtime[];

  constructor(runtimes: readonly Runtime[]) {
    this.#runtimes = runtimes;
  }

  static async load(config: Config): Promise<Runtimes> {
    const file = join(config.SANDBOX_PACKAGES_DIRECTORY, "runtimes.json");
    const manifest = manifestSchema.parse(JSON.parse(await readFile(file, "utf8")));
    const offered = new Set(config.SVC_LANGUAGES.map((name) => findLanguage(name)?.runner ?? name));
    const runtimes = manifest.runtimes.filter(({ language }) => offered.size === 0 || offered.has(language));
    if (runtimes.length === 0) throw new Error(`${file} lists no runtime that is offered`);
    return new Runtimes(runtimes);
  }

  list(): RuntimeInfo[] {
    return this.#runtimes.map(({ language, version }) => {
      const entry = LANGUAGES.find(({ runner }) => runner === language);
      const aliases = entry === undefined ? [] : [...new Set([entry.lang, ...entry.aliases])];
      return { language, version, aliases };
    });
  }

  /** The newest installed runtime of a language that fits a semver range. */
  find(name: string, range: string): Runtime {
    const language = findLanguage(name)?.runner ?? name;
    const installed = this.#runtimes.filter((runtime) => runtime.language === language);
    if (installed.length === 0) throw this.#unsupported("unsupported_language", "language");
    const version = semver.maxSatisfying(
      installed.map((runtime) => runtime.version),
      range === "" ? "*" : range,
    );
    const found = installed.find((runtime) => runtime.version === version);
    if (found === undefined) throw this.#unsupported("unsupported_version", "version");
    return found;
  }

  /** The same for a program with tools. */
  findProgrammatic(name: string, range: string): Runtime {
    const found = this.find(name, range);
    if (found.programmatic !== undefined) {
      const { command, env } = found.programmatic;
      return { ...found, command, env: { ...found.env, ...env } };
    }
    const able = this.#runtimes.filter(({ programmatic }) => programmatic !== undefined);
    const problem = `has no tool calls; languages that have: ${able.map(({ language }) => language).join(", ")}`;
    throw new ServiceError("unsupported_language", `language: ${problem}.`, {
      details: [{ path: "language", problem }],
    });
  }

  #unsupported(code: "unsupported_language" | "unsupported_version", path: string): ServiceError {
    const names = this.#runtimes.map(({ language, version }) => `${language} ${version}`);
    const problem = `is not installed; installed: ${names.join(", ")}`;
    return new ServiceError(code, `${path}: ${problem}.`, { details: [{ path, problem }] });
  }
}
