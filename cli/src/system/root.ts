/** Root rights: the jail needs them to make namespaces and cgroups. Without them a command continues under sudo. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "../instance.ts";
import { Problem } from "../problem.ts";
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

/** Variables that mean something to us and survive the change to root. */
const KEPT =
  /^(SVC_|SANDBOX_|EGRESS_|EXECUTION_|PTC_|TOOL_CALL_|FILE_SERVER_|S3_|REDIS_|.*_(PORT|HOST|CONCURRENCY|REQUESTS|WINDOW|TIMEOUT|MS)$|PORT$|LOG_(LEVEL$|ROTATE_)|NO_COLOR$|CI$)/;

/**
 * Answers undefined as root. Otherwise runs the same command line again through sudo and answers its exit code;
 * without sudo it says what to type.
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
  const kept = Object.keys(process.env).filter((name) => KEPT.test(name));
  process.stderr.write(`${why} needs root rights: continuing with sudo\n`);
  const sudo = ["sudo", ...(kept.length > 0 ? [`--preserve-env=${kept.join(",")}`] : []), "--", ...command];
  return new Promise((resolve) => {
    const child = spawn(sudo[0] ?? "", sudo.slice(1), { stdio: "inherit" });
    // Ctrl-C reaches both; the command under sudo decides when it ends.
    process.on("SIGINT", () => undefined);
    process.on("SIGTERM", () => child.kill("SIGTERM"));
    child.once("close", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 143)));
    child.once("error", () => resolve(1));
  });
}
