/** Asks a runner for a round, and reads its answer, of which nothing is believed: it is bounded in bytes, depth and fields. */
import {
  boundsAround,
  EVENT_LINES,
  type RoundResponse,
  type RunEvent,
  roundResponseSchema,
  type TraceContext,
} from "@svc/contracts";
import { type Config, type InnerClient, jsonAnswer } from "@svc/service-kit";
import { readEventLines } from "./event-lines.ts";

/** JSON writes a character with as many bytes for each byte of output, at most. */
const JSON_FACTOR = 6;
const STREAMS = 2;
/** Events tell the output once more, in pieces. */
const EVENTS_FACTOR = 2;
/** What an answer holds besides output: names of files, as many as there may be. */
const MAX_REST_BYTES = 16 * 1024 * 1024;
/** A pause tells of arguments, in a list of calls. */
const ANSWER_BOUNDS = boundsAround(4);

export interface Round {
  path: string;
  /** JSON. */
  body: string;
  requestId: string;
  signal: AbortSignal;
  trace?: TraceContext | undefined;
  /** Absent: nobody wants to read what the program writes while it runs. */
  tell?: ((event: RunEvent) => void) | undefined;
  /** Of an answer without events: `longestAnswer`. */
  maxBytes: number;
}

export async function askRound(
  client: InnerClient,
  { path, body, requestId, signal, trace, tell, maxBytes }: Round,
): Promise<RoundResponse> {
  const response = await client.send({
    method: "POST",
    path,
    requestId,
    trace,
    headers: { "content-type": "application/json", ...(tell && { accept: EVENT_LINES }) },
    body,
    signal,
    timeoutMs: 0,
  });
  const answer = await client.read(response, (received) =>
    tell === undefined || !String(response.headers["content-type"]).startsWith(EVENT_LINES)
      ? jsonAnswer(received, maxBytes, ANSWER_BOUNDS)
      : readEventLines(received.body, tell, { maxBytes: EVENTS_FACTOR * maxBytes, bounds: ANSWER_BOUNDS }),
  );
  return roundResponseSchema.parse(answer);
}

/** In bytes. */
export function longestAnswer(config: Config): number {
  return STREAMS * JSON_FACTOR * largestOutput(config) + MAX_REST_BYTES;
}

/** The largest output that a run of any language may have. */
function largestOutput({ SANDBOX_OUTPUT_MAX_SIZE, SANDBOX_LIMIT_OVERRIDES }: Config): number {
  let largest = SANDBOX_OUTPUT_MAX_SIZE;
  for (const own of Object.values(SANDBOX_LIMIT_OVERRIDES)) {
    const size = (own as { output_max_size?: unknown } | null)?.output_max_size;
    if (typeof size === "number" && size > largest) largest = size;
  }
  return largest;
}
