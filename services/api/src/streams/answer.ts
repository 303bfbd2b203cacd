/** Answers a request for a run in the form that its caller wants: one answer, or events. */
import type { EventFeed } from "@svc/job-queue";
import type { FastifyReply, FastifyRequest } from "@svc/service-kit";
import { wantsEvents } from "../accept.ts";
import { RunStream } from "./run-stream.ts";

export interface Answered {
  answer: unknown;
  /** Whether the answer is a replay of an earlier request's. */
  replayed: boolean;
}

/** Passes the stream to `run` if the caller wants events. Throws errors that occur before the first event. */
export async function answerRun(
  request: FastifyRequest,
  reply: FastifyReply,
  feed: EventFeed,
  run: (stream: RunStream | undefined) => Promise<Answered>,
): Promise<unknown> {
  if (!wantsEvents(request.headers.accept)) return (await run(undefined)).answer;
  const stream = new RunStream(request, reply, feed);
  try {
    const { answer, replayed } = await run(stream);
    await (replayed ? stream.repeat(Object(answer)) : stream.end(Object(answer)));
  } catch (error) {
    if (!stream.isOpen) {
      await stream.abandon();
      throw error;
    }
    await stream.fail(error);
  }
  return reply;
}
