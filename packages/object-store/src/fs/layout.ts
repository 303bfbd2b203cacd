/**
 * Where things lie below the store's directory:
 *   sessions/<session>/<file>   visible objects
 *   pending/<session>/<file>    objects of sessions that are still being made
 *   incoming/<random>           writes in progress
 * All are on one file system, so that links and renames work between them. Only ids and names generated here become paths.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { checkAddress, type ObjectAddress } from "../store.ts";

const DIRECTORY_MODE = 0o700;

export class Layout {
  readonly sessions: string;
  readonly pending: string;
  readonly incoming: string;

  constructor(root: string) {
    this.sessions = join(root, "sessions");
    this.pending = join(root, "pending");
    this.incoming = join(root, "incoming");
  }

  async create(): Promise<void> {
    for (const directory of [this.sessions, this.pending, this.incoming]) {
      await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
    }
  }

  session(session: string): string {
    checkAddress(session);
    return join(this.sessions, session);
  }

  object({ session, file }: ObjectAddress): string {
    checkAddress(session, file);
    return join(this.sessions, session, file);
  }

  pendingSession(session: string): string {
    checkAddress(session);
    return join(this.pending, session);
  }

  pendingObject({ session, file }: ObjectAddress): string {
    checkAddress(session, file);
    return join(this.pending, session, file);
  }

  fresh(): string {
    return join(this.incoming, randomBytes(16).toString("hex"));
  }
}

/** Creates a directory unless it exists. Returns true if it created the directory. */
export async function ensureDirectory(path: string): Promise<boolean> {
  return (await mkdir(path, { recursive: true, mode: DIRECTORY_MODE })) !== undefined;
}

/** Makes the entries of a directory safe from a power failure. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
