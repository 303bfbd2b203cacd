/**
 * What a run tells while it goes on, before its answer tells all of it: that the program runs, and what
 * it writes. Runner to worker as lines of JSON, worker to API as entries of a stream in Redis.
 */
import { z } from "zod";

export const OUTPUT_STREAMS = ["stdout", "stderr"] as const;
export type OutputStream = (typeof OUTPUT_STREAMS)[number];

const shortText = z.string().max(1024);

export const runEventSchema = z.discriminatedUnion("event", [
  /** The program runs. Once more: it was run again from its beginning, and what came before does not count. */
  z.object({ event: z.literal("started"), language: shortText, version: shortText }),
  /** Whole characters; joined they are the beginning of the final field. */
  z.object({ event: z.enum(OUTPUT_STREAMS), text: z.string() }),
]);
export type RunEvent = z.infer<typeof runEventSchema>;

/** Media type of a runner's answer with events: a line of JSON for each, then a line of RunnerLastLine. */
export const EVENT_LINES = "application/x-ndjson";

/** How a runner's answer with events ends: the answer without events, or the failure that would have been its status and body. */
export const runnerLastLineSchema = z.union([
  z.object({ answer: z.unknown() }),
  z.object({ failure: z.object({ status: z.number().int().min(400).max(599), body: z.unknown() }) }),
]);
