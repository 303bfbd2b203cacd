/** Objects that a look at the whole store fails at: it goes on behind each, and is over when so many fail that storage itself does. */
import { StoreError } from "@svc/object-store";
import type { Log } from "@svc/service-kit";

const MOST = 20;

/** For one look. What is no failure of storage, and a failure too many, is thrown. */
export function passedOver(log: Log): (error: unknown) => undefined {
  let failures = 0;
  return (error) => {
    if (!(error instanceof StoreError) || ++failures > MOST) throw error;
    log.warn({ err: error }, "something in object storage cannot be swept");
  };
}
