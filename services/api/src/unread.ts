/**
 * Closes the connection of a client that reads no byte of its answer for too long. Otherwise the answer would stay in memory for as long
 * as the client likes. Streamed answers have their own timeouts.
 */
import type { HttpServer } from "@svc/service-kit";

const STALLED_MS = 60_000;

export function giveUpUnread(app: HttpServer, stalledMs: number = STALLED_MS): void {
  app.addHook("onSend", (_request, reply, payload, done) => {
    if (typeof payload === "string") reply.raw.setTimeout(stalledMs, () => reply.raw.destroy());
    done();
  });
}
