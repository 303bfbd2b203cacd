/**
 * Reads SVC_API_KEYS_FILE, for the API and for `./svc`. Trusts only the file's owner: refuses a file that the group or others can
 * read, because whoever may read it may soon write it. One exception: a file of root that only this process's group can read.
 * Kubernetes mounts a Secret like that for a user other than root. A file with any problem is refused as a whole. Problems never
 * show the file's content.
 */
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { type ApiKeyRecord, MAX_API_KEYS_FILE_BYTES, parseApiKeys } from "@svc/contracts";

/** Why the file cannot be used. Where possible, the message says what to do. */
export class ApiKeysProblem extends Error {
  /** The system's error code, when the file could not be opened. */
  readonly code: string | undefined;

  constructor(problem: string, code?: string) {
    super(problem);
    this.name = "ApiKeysProblem";
    this.code = code;
  }
}

export interface ApiKeysFile {
  records: ApiKeyRecord[];
  /** Differs when the file was changed or replaced. */
  version: string;
}

const OTHERS = 0o077;
const OTHERS_BUT_GROUP_READS = 0o037;

export async function readApiKeysFile(path: string): Promise<ApiKeysFile> {
  if (!isAbsolute(path)) throw new ApiKeysProblem("must be an absolute path");
  // Without O_NONBLOCK, opening a named pipe here would block the start.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw unreadable(path, error as NodeJS.ErrnoException);
  });
  try {
    const { text, version } = await contentOf(path, file);
    const { records, problems } = parseApiKeys(text);
    if (problems.length > 0) throw new ApiKeysProblem(`${path} is broken: ${problems.join("; ")}`);
    return { records, version };
  } finally {
    await file.close();
  }
}

async function contentOf(path: string, file: FileHandle): Promise<{ text: string; version: string }> {
  const found = await file.stat({ bigint: true });
  if (!found.isFile()) throw new ApiKeysProblem(`${path} is not a regular file`);
  if ((Number(found.mode) & othersOf(found)) !== 0) {
    throw new ApiKeysProblem(`${path} can be read by others; run: chmod 600 ${path}`);
  }
  if (found.size > MAX_API_KEYS_FILE_BYTES) {
    throw new ApiKeysProblem(`${path} is larger than ${MAX_API_KEYS_FILE_BYTES} bytes`);
  }
  return { text: await file.readFile("utf8"), version: versionOf(found) };
}

/** Mode bits that the file of keys must not have. */
function othersOf({ uid, gid }: { uid: bigint; gid: bigint }): number {
  const isLent = uid === 0n && process.geteuid?.() !== 0 && gid === BigInt(process.getegid?.() ?? -1);
  return isLent ? OTHERS_BUT_GROUP_READS : OTHERS;
}

/** The current version of the file; undefined when its metadata cannot be read. */
export async function versionOfFile(path: string): Promise<string | undefined> {
  return stat(path, { bigint: true }).then(versionOf, () => undefined);
}

function versionOf(found: { dev: bigint; ino: bigint; size: bigint; mtimeNs: bigint; ctimeNs: bigint }) {
  return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(":");
}

function unreadable(path: string, { code }: NodeJS.ErrnoException): ApiKeysProblem {
  if (code === "ENOENT")
    return new ApiKeysProblem(`${path} does not exist; ./svc key add NAME makes it`, code);
  if (code === "EACCES")
    return new ApiKeysProblem(`${path} cannot be read by user ${process.getuid?.()}, who must own it`, code);
  return new ApiKeysProblem(`${path} cannot be read (${code})`, code);
}
