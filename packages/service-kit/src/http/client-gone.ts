/** When a client closes its connection before its answer is written whole, what is done for it can end. */
import type { FastifyReply } from "./types.ts";

/** Calls `then` when the connection of the answer has closed. It may have, while a hook waited, and says so only once. */
export function whenClosed({ raw }: Pick<FastifyReply, "raw">, then: () => void): void {
  if (raw.closed) then();
  else raw.once("close", then);
}

/** Aborted, with the given reason, when that happens or has happened. An answer that was written whole never aborts it. */
export function clientGone(reply: FastifyReply, reason: Error): AbortSignal {
  const controller = new AbortController();
  whenClosed(reply, () => {
    if (!reply.raw.writableFinished) controller.abort(reason);
  });
  return controller.signal;
}
