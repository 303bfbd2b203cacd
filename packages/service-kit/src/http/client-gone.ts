/** When a client closes its connection before its answer is written whole, what is done for it can end. */
import type { FastifyReply } from "./types.ts";

/** Aborted, with the given reason, when that happens or has happened. An answer that was written whole never aborts it. */
export function clientGone(reply: FastifyReply, reason: Error): AbortSignal {
  const controller = new AbortController();
  const { raw } = reply;
  const closed = () => {
    if (!raw.writableFinished) controller.abort(reason);
  };
  if (raw.closed) closed();
  else raw.once("close", closed);
  return controller.signal;
}
