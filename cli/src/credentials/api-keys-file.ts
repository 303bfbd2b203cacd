/**
 * The file of API keys as its owner changes it: read whole, checked, written whole under a lock, so that concurrent
 * commands lose nothing. A file that is not right is not touched.
 */
import { readFileSync, statSync } from "node:fs";
import { type ApiKeyRecord, formatApiKeys, parseApiKeys } from "@svc/contracts";
import { Problem } from "../problem.ts";
import { isRoot } from "../system/root.ts";
import { underLock } from "./lock.ts";
import { replaceFile } from "./replace.ts";

const OTHERS = 0o077;

/** Undefined where there is no file. */
export function readApiKeys(path: string): ApiKeyRecord[] | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new Problem(`${path} is no regular file`);
  if ((found.mode & OTHERS) !== 0) {
    throw new Problem(`${path} can be read by others`, `Run: chmod 600 ${path}`);
  }
  const { records, problems } = parseApiKeys(readFileSync(path, "utf8"));
  if (problems.length > 0) throw new Problem(`${path} is broken`, problems.join("\n"));
  return records;
}

/** `change` answers all keys that the file is to have, or throws. The file keeps its owner. */
export async function changeApiKeys(
  path: string,
  change: (records: readonly ApiKeyRecord[]) => readonly ApiKeyRecord[],
): Promise<void> {
  await underLock(path, () => {
    const records = readApiKeys(path) ?? [];
    const owner = isRoot() ? statSync(path, { throwIfNoEntry: false }) : undefined;
    replaceFile(path, formatApiKeys(change(records)), { mode: 0o600, uid: owner?.uid, gid: owner?.gid });
  });
}
