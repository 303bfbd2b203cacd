/**
 * The operator's settings, for all commands alike: the environment overrides the settings file. An empty value counts as not
 * set. What is read is added to this process's environment, so that each module and each child process sees the same values.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { dataFolder } from "../instance.ts";
import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { type FileSetting, parseSettings } from "./file.ts";

export interface Settings {
  /** Documented variables that are set, and every name that begins with SVC_. */
  values: Environment;
  /** The file that was read. */
  file: string | undefined;
  /** Names that got their value from the file. */
  fromFile: ReadonlySet<string>;
  /** Names in the file that are not variables of svc. */
  foreign: readonly { name: string; line: number }[];
  /** Whether others may read the file. */
  isOpen?: boolean;
  /** A settings file that exists but that this user cannot read. */
  unreadable?: string;
}

export interface SettingsFlags {
  settings?: string | undefined;
  "data-dir"?: string | undefined;
}

/** The name of the settings file in a data folder. */
const FILE_NAME = "svc.env";
const MAX_BYTES = 2 ** 20;
const NAMED = "It is named by --settings FILE or SVC_SETTINGS_FILE, or is svc.env of the data folder.";
/** Variables whose values are paths. In a file they are relative to its folder, elsewhere to the working directory. */
const PATHS = [
  "SVC_DATA_DIR",
  "SVC_JWT_PUBLIC_KEYS_DIR",
  "SVC_API_KEYS_FILE",
  "SANDBOX_PACKAGES_DIRECTORY",
  "STORAGE_DIR",
  "REDIS_TLS_CA",
  "LAUNCHER_ROOTFS",
];

export function isSetting(name: string): boolean {
  return Object.hasOwn(VARIABLES, name) || name.startsWith("SVC_");
}

export function readSettings(flags: SettingsFlags, env: Environment): Settings {
  const chosen = flags.settings ?? (env.SVC_SETTINGS_FILE || undefined);
  const file = chosen === undefined ? join(dataFolder(flags, env), FILE_NAME) : resolve(chosen);
  const isThere = chosen !== undefined || existsSync(file);
  const text = isThere ? readText(file, chosen !== undefined) : undefined;
  if (text === undefined) {
    const settings = mergeSettings(new Map(), undefined, env);
    return isThere ? { ...settings, unreadable: file } : settings;
  }
  const given = parseSettings(text, file);
  const settings = mergeSettings(given, file, env);
  demandOwnFolder(given, settings, chosen === undefined);
  return { ...settings, isOpen: (statSync(file).mode & 0o077) !== 0 };
}

/** The settings file that is read, or would be read if it existed. `env`: the environment after the file was read. */
export function settingsPath(dataDir: string, { SVC_SETTINGS_FILE }: Environment): string {
  return SVC_SETTINGS_FILE || join(dataDir, FILE_NAME);
}

/** The settings of a copy that gets nothing from the environment of this process. `file`: as readSettings returned it. */
export function fileSettings(file: string | undefined): Settings {
  return file === undefined ? mergeSettings(new Map(), undefined, {}) : readSettings({ settings: file }, {});
}

/** Adds the settings to the environment of this process and of the processes that it starts. */
export function adoptSettings({ values, file }: Settings): void {
  for (const [name, value] of Object.entries(values)) process.env[name] = value;
  if (file !== undefined) process.env.SVC_SETTINGS_FILE = file;
}

/** The environment overrides the file. Pure. */
export function mergeSettings(
  given: ReadonlyMap<string, FileSetting>,
  file: string | undefined,
  env: Environment,
): Settings {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value && isSetting(name)) values[name] = absolute(name, value, process.cwd());
  }
  const fromFile = new Set<string>();
  const foreign: { name: string; line: number }[] = [];
  for (const [name, { value, line }] of given) {
    if (!isSetting(name)) foreign.push({ name, line });
    else if (value !== "" && values[name] === undefined) {
      values[name] = absolute(name, value, dirname(file ?? "/"));
      fromFile.add(name);
    }
  }
  return { values, file, fromFile, foreign };
}

function absolute(name: string, value: string, folder: string): string {
  return PATHS.includes(name) ? resolve(folder, value) : value;
}

/** Undefined when only root can read the file and the user did not name it. */
function readText(file: string, isChosen: boolean): string | undefined {
  try {
    const found = statSync(file);
    if (!found.isFile()) throw new Problem(`the settings file ${file} is not a regular file`, NAMED);
    if (found.size > MAX_BYTES)
      throw new Problem(`the settings file ${file} has more than ${MAX_BYTES} bytes`, NAMED);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(file));
  } catch (error) {
    if (error instanceof Problem) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" && !isChosen) return undefined;
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA")
      throw new Problem(`the settings file ${file} is not UTF-8`, "Save it as UTF-8.");
    throw new Problem(
      `the settings file ${file} cannot be read${code === "ENOENT" ? ": there is no such file" : ` (${code})`}`,
      NAMED,
    );
  }
}

/** One file has the settings of one copy. So it must not name another settings file, nor point the commands at another data folder. */
function demandOwnFolder(
  given: ReadonlyMap<string, FileSetting>,
  { file = "", values }: Settings,
  isInFolder: boolean,
): void {
  const refused = (name: string, why: string) =>
    new Problem(`${file}:${given.get(name)?.line}: ${name} ${why}`, "Remove the line.");
  if (given.has("SVC_SETTINGS_FILE")) throw refused("SVC_SETTINGS_FILE", "cannot be set in a settings file");
  if (isInFolder && given.has("SVC_DATA_DIR") && values.SVC_DATA_DIR !== dirname(file))
    throw refused("SVC_DATA_DIR", "names another data folder than the one of this file");
}
