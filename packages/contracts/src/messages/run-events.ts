/**
 * Events of a running program: that it started, and its output. The final answer repeats all of the output.
 * The runner sends them to the worker as lines of JSON; the worker sends them to the API through a Redis stream.
 */
import { z } from "zod";
import { idSchema } from "../ids.ts";

export const OUTPUT_STREAMS = ["stdout", "stderr"] as const;
export type OutputStream = (typeof OUTPUT_STREAMS)[number];

const shortText = z.string().max(1024);

/** The program started. A second one means that it was run again from the beginning: readers drop all earlier output. */
const started = z.object({ event: z.literal("started"), language: shortText, version: shortText });
/** `text` holds whole characters. All texts joined are a prefix of the same field in the final answer. */
const output = z.object({ event: z.enum(OUTPUT_STREAMS), text: z.string() });

export const runEventSchema = z.discriminatedUnion("event", [started, output]);
export type RunEvent = z.infer<typeof runEventSchema>;

/**
 * The same events in the Redis stream of a job. `session_id`: the storage session of the outputs, which the grant may have chosen.
 * `at`: the offset of the text in its output since the start, in UTF-16 code units.
 */
export const placedEventSchema = z.discriminatedUnion("event", [
  started.extend({ session_id: idSchema }),
  output.extend({ at: z.number().int().min(0) }),
]);
export type PlacedEvent = z.infer<typeof placedEventSchema>;

/** Media type of a runner's answer with events: a line of JSON for each event, then one line of `runnerLastLineSchema`. */
export const EVENT_LINES = "application/x-ndjson";

/** The last line of a runner's answer with events: the ordinary answer, or the status and body of the ordinary failure. */
export const runnerLastLineSchema = z.union([
  z.object({ answer: z.unknown() }),
  z.object({ failure: z.object({ status: z.number().int().min(400).max(599), body: z.unknown() }) }),
]);
