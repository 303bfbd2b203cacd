/**
 * Turns failures of S3 calls into StoreErrors. Only a missing key is `not_found`; a missing bucket, a denied key, a timeout and
 * everything else is `unavailable`. The cause keeps only name, message, code, status and request id for the log: other fields
 * could hold a credential.
 */
import { StoreError } from "../store.ts";

interface ServiceFailure {
  name?: string;
  message?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number; requestId?: string };
}

export function statusOf(error: unknown): number | undefined {
  return (error as ServiceFailure | null)?.$metadata?.httpStatusCode;
}

export async function s3Call<T>(what: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    throw error instanceof StoreError ? error : toStoreError(what, error);
  }
}

export function toStoreError(what: string, error: unknown): StoreError {
  const { name } = error as ServiceFailure;
  if (name === "NoSuchKey" || name === "NotFound") {
    return new StoreError("not_found", `${what}: no such object`, summary(error));
  }
  return new StoreError("unavailable", `${what} failed`, summary(error));
}

function summary(error: unknown): Error {
  const { name, message, code, $metadata } = error as ServiceFailure;
  const facts = [code, $metadata?.httpStatusCode, $metadata?.requestId].filter((fact) => fact !== undefined);
  return new Error(`${name}: ${message} (${facts.join(", ")})`);
}
