/** Detects clients that close their connection before the whole answer is written, so that work for them can stop. */
import type { FastifyReply } from "./types.ts";

/** Calls `then` once the answer is closed. It may already be, since the `close` event comes only once and a hook may have waited. */
export function whenClosed({ raw }: Pick<FastifyReply, "raw">, then: () => void): void {
  if (raw.closed) then();
  else raw.once("close", then);
}

/** A signal that aborts with `reason` when the client has left. It never aborts after the whole answer was written. */
export function clientGone(reply: FastifyReply, reason: Error): AbortSignal {
  const controller = new AbortController();
  whenClosed(reply, () => {
    if (!reply.raw.writableFinished) controller.abort(reason);
  });
  return controller.signal;
}
