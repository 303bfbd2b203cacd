/** Where a copy keeps credentials. The private keys and the file of API keys are for their owner alone. */
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

/** The tenant of credentials that are made without one. */
export function defaultTenant(env: Environment): string {
  return env.SVC_JWT_SINGLE_TENANT_ID || "main";
}

/** Continues under sudo where the data folder or the file of credentials is somebody else's. Answers the exit code then. */
export async function ownerRights({ dataDir }: Place, file: string): Promise<number | undefined> {
  const argv = process.argv.slice(2);
  if (!isWritable(dataDir)) return continueAsRoot(argv, `the data folder ${dataDir}`);
  return isWritable(file) ? undefined : continueAsRoot(argv, file);
}

/** What is missing can be made where its folder can be written to. */
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return isMissing && path !== "/" && isWritable(dirname(path));
  }
}
