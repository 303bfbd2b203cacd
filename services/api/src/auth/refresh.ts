/** Reloads keys in the background until the signal aborts: one reload at a time. The timer does not keep the process alive. */
import { setTimeout as sleep } from "node:timers/promises";

/** `reload` never throws. */
export function refreshEvery(everyMs: number, signal: AbortSignal, reload: () => Promise<void>): void {
  void (async () => {
    while (!signal.aborted) {
      const isOver = await sleep(everyMs, false, { signal, ref: false }).catch(() => true);
      if (!isOver) await reload();
    }
  })();
}
