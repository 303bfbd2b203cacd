/** What the unit of a copy must know, from the command line and the settings of ./svc install. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { type ChoiceOptions, chooseImage, readChoice } from "../install/image.ts";
import { INSTANCE_OPTIONS, type Instance, ROOT } from "../instance.ts";
import type { Options, Values } from "../options.ts";
import { SHELL } from "../settings/shell.ts";
import { type Environment, settingOf } from "../settings.ts";
import { storageOf } from "../supervisor/ownership.ts";
import { stopSecondsOf } from "../supervisor/supervisor.ts";
import { markOf, UNIT_NAME, type UnitSpec } from "./unit.ts";

export const UNIT_PATH = join("/etc/systemd/system", UNIT_NAME);

export function specOf(
  values: Values<typeof INSTANCE_OPTIONS> & ChoiceOptions,
  instance: Instance,
  settings: Environment,
): UnitSpec {
  const options = copyOptions({ ...values, "data-dir": instance.dataDir });
  return {
    root: ROOT,
    options,
    readable: [...readablePaths(options, settings), ...packageFolders(values, instance, settings)],
    writable: [instance.dataDir, instance.packagesDir, storageOf(instance, settings).path],
    stopSeconds: stopSecondsOf(settingOf("SHUTDOWN_GRACE_MS", settings)),
  };
}

/** The options that select the copy, with absolute paths, because systemd runs the service in another working directory. */
function copyOptions(values: Readonly<Record<string, string | undefined>>): string[] {
  const named: typeof values = { settings: SHELL.SVC_SETTINGS_FILE || undefined };
  return Object.entries(INSTANCE_OPTIONS as Options).flatMap(([name, option]) => {
    const value = values[name] ?? named[name];
    if (value === undefined) return [];
    return [`--${name}`, option.value === "DIR" || option.value === "FILE" ? resolve(value) : value];
  });
}

/** Settings whose values are files or folders that components read. */
const FILE_SETTINGS = ["SVC_JWT_PUBLIC_KEYS_DIR", "SVC_API_KEYS_FILE", "REDIS_TLS_CA", "LAUNCHER_ROOTFS"];

function readablePaths(options: readonly string[], settings: Environment): string[] {
  const named = FILE_SETTINGS.flatMap((name) => settings[name] || []).map((path) => resolve(path));
  return [...options.filter((word) => word.startsWith("/")), ...named];
}

/** Folders of packages that the next ./svc up reads. */
function packageFolders(options: ChoiceOptions, { dataDir }: Instance, settings: Environment): string[] {
  const { packages } = chooseImage(options, settings, readChoice(dataDir));
  return packages.filter((name) => name.startsWith("/"));
}

/** These two become options of the unit. */
const KEPT = ["SVC_DATA_DIR", "SVC_SETTINGS_FILE"];

/** Variables of the shell that would not reach the service. */
export function lostVariables(env: Environment = SHELL): string[] {
  return Object.keys(VARIABLES)
    .filter((name) => Boolean(env[name]) && !KEPT.includes(name))
    .sort();
}

/** What to do with a unit that was not made by this working copy. */
export const MADE_ELSEWHERE =
  "Run ./svc uninstall in the one that made it, which the first line of the file names, or move the file away.";

/** Whose unit is installed: ours, one that was not made by this working copy, or none. */
export function installedUnit(path = UNIT_PATH): "ours" | "other" | "none" {
  if (!existsSync(path)) return "none";
  return readFileSync(path, "utf8").split("\n", 1)[0] === markOf(ROOT) ? "ours" : "other";
}
