/**
 * Turns errors that no command expected into Problems. System errors become sentences that say what to do. Anything else is a
 * bug, whose stack trace goes to a file.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Problem } from "./problem.ts";

const OTHER_FOLDER = "Or choose another data folder with --data-dir DIR or SVC_DATA_DIR.";

/** For each error code: a sentence about the path or address concerned, and advice. */
const SENTENCES: Readonly<Record<string, readonly [sentence: (what: string) => string, advice: string]>> = {
  EACCES: [(what) => `no permission for ${what}`, `Run ./svc as root. ${OTHER_FOLDER}`],
  EPERM: [(what) => `the system does not permit this for ${what}`, `Run ./svc as root. ${OTHER_FOLDER}`],
  ENOENT: [(what) => `${what} does not exist`, "Check the path; it may just have been removed."],
  ENOTDIR: [
    (what) => `a part of ${what} is a file, and a folder is needed`,
    `Check the path. ${OTHER_FOLDER}`,
  ],
  EEXIST: [(what) => `${what} exists, and is not a folder`, `Move it away. ${OTHER_FOLDER}`],
  EISDIR: [(what) => `${what} is a folder, and a file is needed`, "Check the path."],
  ELOOP: [(what) => `links of ${what} lead in a circle`, "Check the path."],
  ENAMETOOLONG: [(what) => `the path is too long: ${what}`, "Choose a shorter one."],
  ENOSPC: [(what) => `no space left for ${what}`, `Free some space (df -h, df -i). ${OTHER_FOLDER}`],
  EDQUOT: [(what) => `the disk quota is used up for ${what}`, `Free some space. ${OTHER_FOLDER}`],
  EROFS: [(what) => `${what} is on a read-only file system`, `Mount it writable. ${OTHER_FOLDER}`],
  EIO: [(what) => `the disk reports an error for ${what}`, "Look at the kernel's messages: dmesg."],
  EMFILE: [() => "too many open files in this process", "Raise the limit: ulimit -n 4096."],
  ENFILE: [() => "too many open files on this machine", "Raise the limit: sysctl -w fs.file-max=N."],
  ENOMEM: [() => "the machine has no memory left", "End other programs, or add memory."],
  EAGAIN: [() => "the machine has no room for another process", "Raise the limit of processes: ulimit -u."],
  EADDRINUSE: [(what) => `${what} is in use`, "Free it, or choose other ports: --port-offset N."],
  EADDRNOTAVAIL: [(what) => `this machine has no address ${what}`, "Check SERVICE_HOST."],
};

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return systemProblem(error) ?? bug(error);
}

/** A failed system call with a known cause outside svc; undefined for anything else. */
export function systemProblem(error: unknown): Problem | undefined {
  if (!(error instanceof Error)) return undefined;
  const {
    code = "",
    syscall,
    path,
    dest,
    address,
    port,
  } = error as NodeJS.ErrnoException & {
    dest?: string;
    address?: string;
    port?: number;
  };
  const entry = Object.hasOwn(SENTENCES, code) ? SENTENCES[code] : undefined;
  if (entry === undefined || syscall === undefined) return undefined;
  const [sentence, advice] = entry;
  const place = address === undefined ? undefined : `${address}${port ? `:${port}` : ""}`;
  return new Problem(sentence(dest ?? path ?? place ?? syscall), advice);
}

function bug(error: unknown): Problem {
  const text = error instanceof Error ? error.message : (error ?? "");
  const [line = ""] = String(text).split("\n");
  return new Problem(
    `${line || "something unexpected happened"} (this is a bug of svc)`,
    `Please report it. ${keptDetails(error)}`,
  );
}

/** The folder is new and closed to other users, so nobody can plant a symbolic link in it. */
function keptDetails(error: unknown): string {
  const text = error instanceof Error ? `${error.stack}\n${causesOf(error)}` : String(error);
  try {
    const file = join(mkdtempSync(join(tmpdir(), "svc-error-")), "details.txt");
    const [, , command = ""] = process.argv;
    writeFileSync(file, `./svc ${command}\nnode ${process.version}\n${text}`, { mode: 0o600 });
    return `Details are in ${file}`;
  } catch {
    return "Its details could not be written to the temporary folder.";
  }
}

function causesOf({ cause }: Error): string {
  return cause instanceof Error ? `caused by ${cause.stack}\n${causesOf(cause)}` : "";
}
