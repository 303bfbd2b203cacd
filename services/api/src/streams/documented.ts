/** How the OpenAPI document describes answers with events. */
import { z } from "zod";
import { EVENT_STREAM } from "../accept.ts";

const eventStream = { schema: z.string() };

/** A 200 that is always an event stream. */
export const eventsAnswer = (description: string) => ({
  description,
  content: { [EVENT_STREAM]: eventStream },
});

/** The 200 of a run, as JSON or as an event stream. */
export const runAnswer = (answer: z.ZodType) => ({
  description:
    "The answer; with `Accept: text/event-stream` what the program writes while it runs, and the answer last.",
  content: { "application/json": { schema: answer }, [EVENT_STREAM]: eventStream },
});
