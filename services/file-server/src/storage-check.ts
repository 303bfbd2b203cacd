/** Checks whether object storage accepts writes now, and says in plain words why not. */
import type { ObjectStore } from "@svc/object-store";
import type { Check } from "@svc/service-kit";

const SILENT_MS = 5000;
/** Keyed by the error code of the failed call. */
const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "object storage is full",
  EDQUOT: "object storage is full: its quota is used up",
  EROFS: "object storage is mounted read-only",
  EACCES: "object storage may not be written by the file server's user",
  EPERM: "object storage may not be written by the file server's user",
  EIO: "the disk of object storage fails",
  EMFILE: "object storage cannot be written: no file descriptor is left",
  ENFILE: "object storage cannot be written: the machine has no file descriptor left",
};

export function storageCheck(store: ObjectStore): Check {
  return async () => {
    const silent = Promise.withResolvers<string>();
    const timer = setTimeout(() => silent.resolve("object storage does not answer"), SILENT_MS);
    const checked = store.check().then(() => undefined, reasonOf);
    return Promise.race([checked, silent.promise]).finally(() => clearTimeout(timer));
  };
}

function reasonOf(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const reason = REASONS[String((cause as NodeJS.ErrnoException).code)];
    if (reason !== undefined) return reason;
  }
  return "object storage cannot be written";
}
