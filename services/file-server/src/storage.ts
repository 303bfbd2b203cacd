/** Creates the driver of object storage, and maps its failures to the error table. */
import { ID_TAKEN, ServiceError } from "@svc/contracts";
import { FsObjectStore, type ObjectStore, StoreError } from "@svc/object-store";
import type { Config } from "@svc/service-kit";
import { shortestLife } from "./lives.ts";

/** A use is recorded at most this many times per shortest life of objects. */
const NOTES_PER_LIFE = 24;

/** By how much the recorded last use of an object may be earlier than the real one. */
export function useGranularityMs(config: Config): number {
  return Math.ceil((shortestLife(config) * 1000) / NOTES_PER_LIFE);
}

export async function createStore(config: Config): Promise<ObjectStore> {
  if (config.STORAGE_DRIVER === "fs") {
    return FsObjectStore.create({ root: config.STORAGE_DIR, useGranularityMs: useGranularityMs(config) });
  }
  // The S3 client is large, so it is loaded only where it is used.
  const { S3ObjectStore } = await import("@svc/object-store/s3");
  return new S3ObjectStore({
    endpoint: config.S3_ENDPOINT || undefined,
    region: config.S3_REGION,
    bucket: config.S3_BUCKET,
    forcePathStyle: config.S3_FORCE_PATH_STYLE,
    credentials:
      config.S3_ACCESS_KEY === ""
        ? undefined
        : {
            accessKeyId: config.S3_ACCESS_KEY,
            secretAccessKey: config.S3_SECRET_KEY,
            sessionToken: config.S3_SESSION_TOKEN || undefined,
          },
    useGranularityMs: useGranularityMs(config),
  });
}

/** Runs an operation of the store and maps its failures. Damage is described in the log only; the caller gets `internal_error`. */
export async function stored<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    throw error instanceof StoreError ? toServiceError(error) : error;
  }
}

function toServiceError(error: StoreError): ServiceError {
  switch (error.failure) {
    case "not_found":
      return new ServiceError("file_not_found");
    case "exists":
      return new ServiceError("invalid_request", "The id is taken; objects are never overwritten.", {
        details: [ID_TAKEN],
      });
    case "too_large":
      return new ServiceError("file_too_large");
    case "damaged":
      return new ServiceError("internal_error", undefined, { cause: error });
    case "unavailable":
      return new ServiceError("storage_unavailable", undefined, { cause: error });
  }
}
