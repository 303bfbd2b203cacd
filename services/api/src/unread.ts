/**
 * A client that takes no byte of its answer for long is given up: its connection would keep the answer for as long as the client likes. Answers
 * that are streams have times of their own.
 */
import type { HttpServer } from "@svc/service-kit";

const STALLED_MS = 60_000;

export function giveUpUnread(app: HttpServer, stalledMs: number = STALLED_MS): void {
  app.addHook("onSend", (_request, reply, payload, done) => {
    if (typeof payload === "string") reply.raw.setTimeout(stalledMs, () => reply.raw.destroy());
    done();
  });
}
