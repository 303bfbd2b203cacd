/**
 * The place of a span in its trace, as the W3C recommendation Trace Context writes it into headers. It travels from the API
 * in the job and in the headers of calls between components, and says nothing of the run itself. No component relies on it.
 */
import { z } from "zod";

export const traceContextSchema = z.object({
  /** `00-<trace id>-<span id>-<flags>` */
  traceparent: z.string(),
  /** What the caller's own tracing adds; 512 characters at most. */
  tracestate: z.string().optional(),
});
export type TraceContext = z.infer<typeof traceContextSchema>;
