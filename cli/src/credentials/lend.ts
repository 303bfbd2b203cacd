/**
 * Lets the user of the API process read the file of API keys, wherever that file is and no matter who owns it. The supervisor
 * keeps a copy in the run folder, with mode 0600, owned by that user. The copy follows the file within half a second. The
 * folder stays owned by the supervisor, so that no component can plant a symbolic link in the place of a new copy.
 */

import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { MAX_API_KEYS_FILE_BYTES } from "@svc/contracts";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { svcLine } from "../svc-line.ts";
import { replaceFile } from "../system/replace-file.ts";
import { serviceProcesses } from "../topology.ts";
import { type User, userOf } from "../users.ts";
import { apiKeysPath } from "./place.ts";

const LENT_API_KEYS = "api-keys.jsonl";
const LOOK_EVERY_MS = 500;
const OTHERS = 0o077;

export interface Lent<E extends Environment> {
  /** The environment in which the variable names the copy. */
  caller: E;
  close: () => void;
}

/** Calls `warn` when a changed file cannot be copied. Throws a Problem when the file cannot be used at the start. */
export function lendApiKeys<E extends Environment>(
  instance: Instance,
  caller: E,
  unprivileged: boolean,
  warn: (problem: string) => void,
): Lent<E> {
  if (!caller.SVC_API_KEYS_FILE) return { caller, close: () => undefined };
  const path = apiKeysPath(instance, caller);
  const copy = join(instance.runDir, LENT_API_KEYS);
  const owner = unprivileged ? ownerOf(instance, caller) : undefined;
  let lent: string | undefined = lend(path, copy, owner);
  let warned: string | undefined;
  const look = () => {
    try {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (found === undefined) {
        rmSync(copy, { force: true });
        lent = undefined;
      }
      if (found === undefined || versionOf(found) !== lent) lent = lend(path, copy, owner);
      warned = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== warned)
        warn(`${message}; ${existsSync(copy) ? "the last API keys stay" : "no API key is"} in use`);
      warned = message;
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  timer.unref();
  return { caller: { ...caller, SVC_API_KEYS_FILE: copy }, close: () => clearInterval(timer) };
}

function ownerOf(instance: Instance, caller: Environment): User {
  const isShared = serviceProcesses(caller).includes("combined");
  return userOf(isShared ? "combined" : "api", instance);
}

/** Returns the version of the file that was copied. */
function lend(path: string, copy: string, owner: User | undefined): string {
  const file = openedKeys(path);
  try {
    const found = fstatSync(file, { bigint: true });
    if (!found.isFile() || found.size > MAX_API_KEYS_FILE_BYTES) {
      throw new Problem(
        `SVC_API_KEYS_FILE ${path} is not a regular file of at most ${MAX_API_KEYS_FILE_BYTES} bytes`,
      );
    }
    if ((Number(found.mode) & OTHERS) !== 0) {
      throw new Problem(`SVC_API_KEYS_FILE ${path} can be read by others`, `Run: chmod 600 ${path}`);
    }
    replaceFile(copy, readFileSync(file), { mode: 0o600, ...owner });
    return versionOf(found);
  } finally {
    closeSync(file);
  }
}

/** O_NONBLOCK: a named pipe in the place of the file must not block the supervisor. */
function openedKeys(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT")
      throw new Problem(`SVC_API_KEYS_FILE ${path} cannot be read (${code})`, "Check the path.");
    throw new Problem(`SVC_API_KEYS_FILE ${path} does not exist`, `Make it: ${svcLine("key add NAME")}`);
  }
}

function versionOf(found: BigIntStats): string {
  return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(":");
}
