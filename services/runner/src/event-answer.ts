/**
 * Answers a round with lines of JSON, if the caller asks for that: one line for each event as it comes, and the last one for the answer. A round
 * that ends before its first event is answered without events.
 */
import { PassThrough } from "node:stream";
import { EVENT_LINES, errorBody, type RoundResponse } from "@svc/contracts";
import { type FastifyReply, type FastifyRequest, toServiceError } from "@svc/service-kit";
import type { TellEvent } from "./execution/run-events.ts";

export async function answerRound(
  request: FastifyRequest,
  reply: FastifyReply,
  run: (tell?: TellEvent) => Promise<RoundResponse>,
): Promise<unknown> {
  if (request.headers.accept !== EVENT_LINES) return run();
  const lines = new PassThrough();
  const write = (line: object) => lines.write(`${JSON.stringify(line)}\n`);
  const begun = Promise.withResolvers<"begun">();
  const round = run((event) => {
    write(event);
    begun.resolve("begun");
  });
  const first = await Promise.race([begun.promise, round]);
  if (first !== "begun") return first;
  round
    .then(
      (answer) => write({ answer }),
      (error: unknown) => {
        const failure = toServiceError(error);
        write({ failure: { status: failure.status, body: errorBody(failure, request.id) } });
      },
    )
    .finally(() => lines.end());
  return reply.type(EVENT_LINES).send(lines);
}
