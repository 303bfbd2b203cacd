/**
 * What an operator set, for every command alike: the settings file, and over it the environment. An empty value counts as
 * not set. What is read joins this process's environment, so that each module and each process that it starts sees the same.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { dataFolder } from "../instance.ts";
import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { type FileSetting, parseSettings } from "./file.ts";

export interface Settings {
  /** Our variables that are set, and every name that begins with SVC_. */
  values: Environment;
  /** The file that was read. */
  file: string | undefined;
  /** Names that the file gave a value. */
  fromFile: ReadonlySet<string>;
  /** Names in the file that are not of ours. */
  foreign: readonly { name: string; line: number }[];
  /** Whether others may read the file. */
  isOpen?: boolean;
  /** A file that is there and cannot be read by this user. */
  unreadable?: string;
}

export interface SettingsFlags {
  settings?: string | undefined;
  "data-dir"?: string | undefined;
}

/** Of the settings file in a data folder. */
const FILE_NAME = "svc.env";
const MAX_BYTES = 2 ** 20;
const NAMED = "It is named by --settings FILE or SVC_SETTINGS_FILE, or is svc.env of the data folder.";
/** Their values are paths: in a file relative to its folder, elsewhere relative to the folder of the command. */
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

/** The file that is read, or would be if it were there. `env`: with what was read from it. */
export function settingsPath(dataDir: string, { SVC_SETTINGS_FILE }: Environment): string {
  return SVC_SETTINGS_FILE || join(dataDir, FILE_NAME);
}

/** The settings of a copy that gets nothing from the environment of this process. `file`: as readSettings told it. */
export function fileSettings(file: string | undefined): Settings {
  return file === undefined ? mergeSettings(new Map(), undefined, {}) : readSettings({ settings: file }, {});
}

/** Gives the settings to this process and to what it starts. */
export function adoptSettings({ values, file }: Settings): void {
  for (const [name, value] of Object.entries(values)) process.env[name] = value;
  if (file !== undefined) process.env.SVC_SETTINGS_FILE = file;
}

/** The environment over the file. Pure. */
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

/** Undefined when a file that nobody named may be read by root alone. */
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

/** One file has the settings of one copy: it names no further file, and does not send the commands to another folder. */
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
