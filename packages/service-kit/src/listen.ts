/**
 * A component listens once it is prepared, so that nobody is refused while it is replaced. What it needs may be away for long: from
 * then on it listens all the same, is alive and not ready, and answers requests with 503 `starting_up`.
 */
import { setTimeout as sleep } from "node:timers/promises";

const PREPARED_MS = 3000;

export async function listenWhen(prepared: Promise<unknown>, listen: () => Promise<unknown>): Promise<void> {
  await Promise.race([prepared, sleep(PREPARED_MS, undefined, { ref: false })]);
  await listen();
  await prepared;
}
