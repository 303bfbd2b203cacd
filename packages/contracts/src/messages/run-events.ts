/**
 * What a run tells while it goes on, before its answer tells all of it: that the program runs, and what
 * it writes. Runner to worker as lines of JSON, worker to API as entries of a stream in Redis.
 */
import { z } from "zod";
import { idSchema } from "../ids.ts";

export const OUTPUT_STREAMS = ["stdout", "stderr"] as const;
export type OutputStream = (typeof OUTPUT_STREAMS)[number];

const shortText = z.string().max(1024);

/** The program runs. Once more: it was run again from its beginning, and what came before does not count. */
const started = z.object({ event: z.literal("started"), language: shortText, version: shortText });
/** Whole characters; joined they are the beginning of the final field. */
const output = z.object({ event: z.enum(OUTPUT_STREAMS), text: z.string() });

export const runEventSchema = z.discriminatedUnion("event", [started, output]);
export type RunEvent = z.infer<typeof runEventSchema>;

/**
 * The same in the stream of a job. `session_id`: of its outputs, which its grant may have chosen. `at`: where the text begins in its output since the start, in characters as
 * JavaScript counts them.
 */
export const placedEventSchema = z.discriminatedUnion("event", [
  started.extend({ session_id: idSchema }),
  output.extend({ at: z.number().int().min(0) }),
]);
export type PlacedEvent = z.infer<typeof placedEventSchema>;

/** Media type of a runner's answer with events: a line of JSON for each, then a line of RunnerLastLine. */
export const EVENT_LINES = "application/x-ndjson";

/** How a runner's answer with events ends: the answer without events, or the failure that would have been its status and body. */
export const runnerLastLineSchema = z.union([
  z.object({ answer: z.unknown() }),
  z.object({ failure: z.object({ status: z.number().int().min(400).max(599), body: z.unknown() }) }),
]);
