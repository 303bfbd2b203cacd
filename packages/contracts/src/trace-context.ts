/**
 * The position of a span in its trace, in the header format of the W3C recommendation Trace Context. It travels from the API in
 * jobs and in the headers of internal calls. It says nothing about the run itself, and no component relies on it.
 */
import { z } from "zod";

export const traceContextSchema = z.object({
  /** `00-<trace id>-<span id>-<flags>` */
  traceparent: z.string(),
  /** Data of the caller's own tracing; at most 512 characters. */
  tracestate: z.string().optional(),
});
export type TraceContext = z.infer<typeof traceContextSchema>;
