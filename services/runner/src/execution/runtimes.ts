/** The installed runtimes, as the image's manifest lists them. Read once at start; a broken manifest stops the runner. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  findLanguage,
  installedPackageSchema,
  installHint,
  LANGUAGES,
  type LanguageLimits,
  type RuntimeInfo,
  ServiceError,
} from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import semver from "semver";
import { z } from "zod";

const manifestSchema = z.object({
  image: z.string(),
  /** Commands of the image that callers are told about. */
  commands: z.array(z.string()).optional(),
  runtimes: z.array(
    z.object({
      language: z.string(),
      version: z.string(),
      entry: z.string(),
      command: z.array(z.string()).min(1),
      env: z.record(z.string(), z.string()),
      /** Libraries beside the language's own. */
      packages: z.array(installedPackageSchema).optional(),
      /** Fork servers of the interpreter, by jaild's names. */
      zygotes: z
        .array(
          z.object({
            name: z.string(),
            argv: z.array(z.string()).min(1),
            words: z.array(z.string()),
            /** Programs that have tools take at least this zygote, whatever their words. */
            programmatic: z.boolean().optional(),
            /** The same for programs of a session. */
            session: z.boolean().optional(),
          }),
        )
        .optional(),
      /** An interpreter that is pre-started with this command and these variables. */
      prestarted: z
        .object({
          argv: z.array(z.string()).min(1),
          env: z.record(z.string(), z.string()),
          /** How many wait in quiet times. */
          least: z.number().int().min(0),
          /** Time between a request that takes one and the making of the next. */
          refillMs: z.number().int().min(0),
        })
        .optional(),
      /** Compiles the program first, in a jail of its own; absent when sources are run as they are. */
      compile: z
        .object({ command: z.array(z.string()).min(1), env: z.record(z.string(), z.string()) })
        .optional(),
      /** How a program that has tools is started instead; absent when the language cannot have them. */
      programmatic: z
        .object({ command: z.array(z.string()).min(1), env: z.record(z.string(), z.string()) })
        .optional(),
      /** How a program is started that keeps the variables of its session; absent when the language has no such start. */
      session: z
        .object({ command: z.array(z.string()).min(1), env: z.record(z.string(), z.string()) })
        .optional(),
    }),
  ),
});
export type Runtime = z.infer<typeof manifestSchema>["runtimes"][number];

export interface Zygote {
  name: string;
  argv: readonly string[];
  words: readonly string[];
  /** Commands of programs with tools and of programs of a session, which take at least this zygote. */
  preludes?: readonly (readonly string[])[];
}

export type Prestarted = NonNullable<Runtime["prestarted"]>;

export class Runtimes {
  readonly #runtimes: readonly Runtime[];
  readonly #commands: readonly string[];

  constructor(runtimes: readonly Runtime[], commands: readonly string[] = []) {
    this.#runtimes = runtimes;
    this.#commands = commands;
  }

  static async load(config: Config): Promise<Runtimes> {
    const file = join(config.SANDBOX_PACKAGES_DIRECTORY, "runtimes.json");
    const manifest = manifestSchema.parse(JSON.parse(await readFile(file, "utf8")));
    const offered = offeredLanguages(config.SVC_LANGUAGES);
    const installed = new Set(manifest.runtimes.map(({ language }) => language));
    const missing = [...(offered ?? [])].filter((language) => !installed.has(language));
    if (missing.length > 0) {
      const hints = missing.map((language) => installHint(language, [...installed])).join("; ");
      throw new Error(`SVC_LANGUAGES names what is not installed: ${missing.join(", ")}. ${hints}`);
    }
    const runtimes = manifest.runtimes.filter(({ language }) => offered?.has(language) ?? true);
    if (runtimes.length === 0) throw new Error(`${file} lists no runtime`);
    return new Runtimes(runtimes, manifest.commands);
  }

  get languages(): string[] {
    return this.#runtimes.map(({ language }) => language);
  }

  zygotes(): Zygote[] {
    return this.#runtimes.flatMap(({ zygotes = [], programmatic, session, entry }) =>
      zygotes.map(({ programmatic: withTools = false, session: ofSessions = false, ...zygote }) => {
        const preludes = [withTools && programmatic, ofSessions && session]
          .filter((start) => start !== false && start !== undefined)
          .map(({ command }) => command.map((word) => word.replaceAll("{entry}", entry)));
        return { ...zygote, ...(preludes.length > 0 && { preludes }) };
      }),
    );
  }

  prestarted(): (Runtime & { prestarted: Prestarted })[] {
    return this.#runtimes.flatMap((runtime) =>
      runtime.prestarted ? [{ ...runtime, prestarted: runtime.prestarted }] : [],
    );
  }

  list(limitsOf: (language: string) => LanguageLimits): RuntimeInfo[] {
    return this.#runtimes.map(({ language, version, packages = [] }) => {
      const entry = LANGUAGES.find(({ runner }) => runner === language);
      const aliases = entry === undefined ? [] : [...new Set([entry.lang, ...entry.aliases])];
      const commands = [...this.#commands];
      return { language, version, aliases, packages, commands, limits: limitsOf(language) };
    });
  }

  /** The newest installed runtime of a language that fits a semver range. */
  find(name: string, range: string): Runtime {
    const language = findLanguage(name)?.runner ?? name;
    const installed = this.#runtimes.filter((runtime) => runtime.language === language);
    if (installed.length === 0) {
      const others = this.#runtimes.map((runtime) => runtime.language);
      throw this.#unsupported("unsupported_language", "language", installHint(name, others));
    }
    const version = semver.maxSatisfying(
      installed.map((runtime) => runtime.version),
      range === "" ? "*" : range,
    );
    const found = installed.find((runtime) => runtime.version === version);
    if (found === undefined) throw this.#unsupported("unsupported_version", "version");
    return found;
  }

  /** The same for a run of a session, with the command that keeps variables. */
  findSession(name: string, range: string): Runtime {
    const found = this.find(name, range);
    if (found.session === undefined) return found;
    const { command, env } = found.session;
    return { ...found, command, env: { ...found.env, ...env } };
  }

  /** The same for a program with tools, with the command that offers them. */
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

  #unsupported(
    code: "unsupported_language" | "unsupported_version",
    path: string,
    hint?: string,
  ): ServiceError {
    const names = this.#runtimes.map(({ language, version }) => `${language} ${version}`);
    const problem = [`is not installed; installed: ${names.join(", ")}`, hint]
      .filter((part) => part !== undefined)
      .join("; ");
    return new ServiceError(code, `${path}: ${problem}.`, { details: [{ path, problem }] });
  }
}

/** The value of SVC_LANGUAGES as runner names; undefined: everything that is installed. */
function offeredLanguages(names: readonly string[]): ReadonlySet<string> | undefined {
  if (names.length === 0 || names.some((name) => name.toLowerCase() === "all")) return undefined;
  return new Set(
    names.map((name) => {
      const language = findLanguage(name);
      if (language === undefined) throw new Error(`SVC_LANGUAGES names no language: ${name}`);
      return language.runner;
    }),
  );
}
