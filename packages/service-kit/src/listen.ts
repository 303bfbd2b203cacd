/**
 * A component listens once it is prepared, so that no caller is refused while a process is replaced. If its dependencies are
 * missing for longer, it listens all the same. Then it is alive but not ready, and answers requests with 503 `starting_up`.
 */
import { setTimeout as sleep } from "node:timers/promises";

const PREPARED_MS = 3000;

export async function listenWhen(prepared: Promise<unknown>, listen: () => Promise<unknown>): Promise<void> {
  await Promise.race([prepared, sleep(PREPARED_MS, undefined, { ref: false })]);
  await listen();
  await prepared;
}
