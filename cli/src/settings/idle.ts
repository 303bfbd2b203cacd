/** Finds settings of a store that this copy does not use: an operator who names a bucket may believe that files are stored there. Pure. */
import { hasOwnRedis } from "../environment.ts";
import type { Environment } from "../settings.ts";

const BUCKET = /^S3_/;
const REDIS = /^(REDIS_|SVC_REDIS_)/;

/** Each setting with the reason why it has no effect. */
export function idleSettings(values: Environment): [name: string, reason: string][] {
  const driver = values.STORAGE_DRIVER?.toLowerCase() || "fs";
  return Object.keys(values).flatMap((name): [string, string][] => {
    if (!values[name]) return [];
    if (BUCKET.test(name) && driver === "fs") return [[name, "STORAGE_DRIVER is not s3"]];
    if (name === "STORAGE_DIR" && driver === "s3") return [[name, "STORAGE_DRIVER is s3"]];
    if (REDIS.test(name) && !hasOwnRedis(values))
      return [[name, "without REDIS_URL or REDIS_HOST ./svc starts a Redis of its own"]];
    return [];
  });
}
