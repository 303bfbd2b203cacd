/**
 * Handles the objects at which a walk over the whole store fails. The walk skips them, but ends when so many fail that storage itself must have
 * failed.
 */
import { StoreError } from "@svc/object-store";
import type { Log } from "@svc/service-kit";

const MOST = 20;

/** For one walk. Rethrows what is not a failure of storage, and each failure beyond MOST. */
export function passedOver(log: Log): (error: unknown) => undefined {
  let failures = 0;
  return (error) => {
    if (!(error instanceof StoreError) || ++failures > MOST) throw error;
    log.warn({ err: error }, "something in object storage cannot be swept");
  };
}
