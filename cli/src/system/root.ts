/** Root rights: the jail needs them to make namespaces and cgroups. Without them a command continues under sudo. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "../instance.ts";
import { Problem } from "../problem.ts";
import { SHELL } from "../settings/shell.ts";
import { isSetting } from "../settings/sources.ts";
import { exitCodeOf } from "./process.ts";
import { shown } from "./run.ts";

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** Full path of a program on PATH or in the system's own folders. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return folders
    .filter((folder) => folder.startsWith("/"))
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

/**
 * Variables of the shell that concern svc and are preserved by sudo. The command under sudo reads the settings file itself.
 */
const isKept = (name: string) =>
  Boolean(SHELL[name]) && (isSetting(name) || ["NO_COLOR", "CI"].includes(name));

/**
 * Returns undefined when this process is root. Otherwise runs the same command line again under sudo and returns its exit
 * code. Without sudo, throws a Problem that says what to type.
 */
export async function continueAsRoot(argv: readonly string[], why: string): Promise<number | undefined> {
  if (isRoot()) return undefined;
  const command = [join(ROOT, "svc"), ...argv];
  if (findProgram("sudo") === undefined) {
    throw new Problem(
      `${why} needs root rights, and sudo is not installed`,
      `As root, run: ${shown(command)}`,
    );
  }
  const kept = Object.keys(SHELL).filter(isKept);
  process.stderr.write(`${why} needs root rights: continuing with sudo\n`);
  const sudo = ["sudo", ...(kept.length > 0 ? [`--preserve-env=${kept.join(",")}`] : []), "--", ...command];
  return new Promise((resolve) => {
    const child = spawn(sudo[0] ?? "", sudo.slice(1), { stdio: "inherit" });
    // Ctrl-C reaches both processes. The command under sudo decides when it ends.
    process.on("SIGINT", () => undefined);
    process.on("SIGTERM", () => child.kill("SIGTERM"));
    child.once("close", (code, signal) => resolve(code ?? exitCodeOf(signal ?? "SIGTERM")));
    child.once("error", () => resolve(1));
  });
}
