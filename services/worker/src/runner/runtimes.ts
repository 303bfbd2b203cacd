/** Keeps the list of installed runtimes in Redis fresh, for the API's validation. */
import { RUNTIMES_KEY, type RuntimeInfo } from "@svc/contracts";
import { errorText, type Log, type Redis } from "@svc/service-kit";
import type { Runner } from "./client.ts";

const REFRESH_MS = 30_000;
const RETRY_MS = 250;

/** Publishes now and then periodically; calls `onFirst` after the first success. Returns a function that stops it. */
export function publishRuntimes(
  runner: Runner,
  redis: Redis,
  log: Log,
  onFirst: (runtimes: RuntimeInfo[]) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let first = true;
  const publish = async (): Promise<void> => {
    const runtimes = await runner.runtimes();
    await redis.set(RUNTIMES_KEY, JSON.stringify(runtimes));
    if (first) onFirst(runtimes);
    first = false;
  };
  const tick = (): void => {
    publish().then(
      () => {
        timer = setTimeout(tick, REFRESH_MS);
      },
      (error: Error) => {
        log.debug({ err: errorText(error) }, "reading the runtimes failed");
        timer = setTimeout(tick, RETRY_MS);
      },
    );
  };
  tick();
  return () => clearTimeout(timer);
}
