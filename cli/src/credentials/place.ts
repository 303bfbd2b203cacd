/** Where a copy keeps credentials. Only their owner may read the private keys and the file of API keys. */
import { accessSync, constants } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { continueAsRoot } from "../system/root.ts";

type Place = Pick<Instance, "dataDir">;

export function apiKeysPath({ dataDir }: Place, env: Environment): string {
  const path = env.SVC_API_KEYS_FILE || join(dataDir, "api-keys.jsonl");
  if (isAbsolute(path)) return path;
  throw new Problem("SVC_API_KEYS_FILE must be an absolute path", `Not: ${path}`);
}

/** The public keys of this copy's own signers, for SVC_JWT_PUBLIC_KEYS_DIR. Others may read them. */
export function publicKeysFolder({ dataDir }: Place): string {
  return join(dataDir, "jwt-keys");
}

/** The tenant of credentials for which none was named. */
export function defaultTenant(env: Environment): string {
  return env.SVC_JWT_SINGLE_TENANT_ID || "main";
}

/** Continues under sudo when this user cannot write to the data folder or to the file of credentials. Then returns the exit code. */
export async function ownerRights({ dataDir }: Place, file: string): Promise<number | undefined> {
  const argv = process.argv.slice(2);
  if (!isWritable(dataDir)) return continueAsRoot(argv, `the data folder ${dataDir}`);
  return isWritable(file) ? undefined : continueAsRoot(argv, file);
}

/** A missing path counts as writable when its nearest existing folder is writable. */
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return isMissing && path !== "/" && isWritable(dirname(path));
  }
}
