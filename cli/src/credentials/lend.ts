/**
 * Lets the user of the API's process read the file of API keys, wherever it lies and whoever owns it: the supervisor
 * keeps a copy in the run folder, mode 0600, which belongs to that user and follows the file within half a second. The
 * folder stays the supervisor's own, so that no component can put a link in the way of a new copy.
 */
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { MAX_API_KEYS_FILE_BYTES } from "@svc/contracts";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { componentsIn, serviceProcesses } from "../topology.ts";
import { type User, userOf } from "../users.ts";
import { apiKeysPath } from "./place.ts";
import { replaceFile } from "./replace.ts";

const LENT_API_KEYS = "api-keys.jsonl";
const LOOK_EVERY_MS = 500;
const OTHERS = 0o077;

export interface Lent<E extends Environment> {
  /** The environment in which the variable names the copy. */
  caller: E;
  close: () => void;
}

/** `warn` is told what keeps a changed file from being lent. Throws a Problem where the file cannot be used at the start. */
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
  let lent = lend(path, copy, owner);
  let warned: string | undefined;
  const look = () => {
    try {
      if (versionOf(path) !== lent) lent = lend(path, copy, owner);
      warned = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (statSync(path, { throwIfNoEntry: false }) === undefined) rmSync(copy, { force: true });
      if (message !== warned) warn(message);
      warned = message;
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  timer.unref();
  return { caller: { ...caller, SVC_API_KEYS_FILE: copy }, close: () => clearInterval(timer) };
}

function ownerOf(instance: Instance, caller: Environment): User {
  const process = serviceProcesses(caller).find((name) => componentsIn(name).includes("api"));
  return userOf(process ?? "api", instance);
}

/** Answers the version of the file that was copied. */
function lend(path: string, copy: string, owner: User | undefined): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw new Problem(`SVC_API_KEYS_FILE ${path} does not exist`, "Make it: ./svc key add NAME");
  if (!found.isFile() || found.size > MAX_API_KEYS_FILE_BYTES) {
    throw new Problem(
      `SVC_API_KEYS_FILE ${path} is no regular file of at most ${MAX_API_KEYS_FILE_BYTES} bytes`,
    );
  }
  if ((found.mode & OTHERS) !== 0) {
    throw new Problem(`SVC_API_KEYS_FILE ${path} can be read by others`, `Run: chmod 600 ${path}`);
  }
  const version = versionOf(path);
  replaceFile(copy, readFileSync(path), { mode: 0o600, ...owner });
  return version;
}

function versionOf(path: string): string {
  const found = statSync(path, { bigint: true });
  return [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(":");
}
