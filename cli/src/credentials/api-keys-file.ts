/**
 * Changes the file of API keys for its owner. The file is read, checked and replaced as a whole under a lock, so concurrent
 * commands lose no change. An invalid file is not touched.
 */
import { statSync } from "node:fs";
import { type ApiKeyRecord, formatApiKeys } from "@svc/contracts";
import { ApiKeysProblem, readApiKeysFile } from "@svc/service-kit/credentials/api-keys-file";
import { Problem } from "../problem.ts";
import { replaceFile } from "../system/replace-file.ts";
import { isRoot } from "../system/root.ts";
import { underLock } from "./lock.ts";

/** Returns undefined when there is no file. */
export async function readApiKeys(path: string): Promise<ApiKeyRecord[] | undefined> {
  try {
    return (await readApiKeysFile(path)).records;
  } catch (error) {
    if (!(error instanceof ApiKeysProblem)) throw error;
    if (error.code === "ENOENT") return undefined;
    throw new Problem(`the file of API keys ${error.message}`, "docs/authentication.md says what it holds.");
  }
}

/** `change` returns all keys for the new file, or throws. The file keeps its owner. */
export async function changeApiKeys(
  path: string,
  change: (records: readonly ApiKeyRecord[]) => readonly ApiKeyRecord[],
): Promise<void> {
  await underLock(path, async () => {
    const records = (await readApiKeys(path)) ?? [];
    const owner = isRoot() ? statSync(path, { throwIfNoEntry: false }) : undefined;
    replaceFile(path, formatApiKeys(change(records)), { mode: 0o600, uid: owner?.uid, gid: owner?.gid });
  });
}
