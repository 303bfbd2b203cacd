/** Answers a request of a run as its caller wants: with one answer, or with events. */
import type { EventFeed } from "@svc/job-queue";
import type { FastifyReply, FastifyRequest } from "@svc/service-kit";
import { wantsEvents } from "../accept.ts";
import { RunStream } from "./run-stream.ts";

export interface Answered {
  answer: unknown;
  /** The answer of an earlier request. */
  replayed: boolean;
}

/** `run` is given the stream where one is wanted. Errors before the first event are thrown. */
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
