/** Sends a round to a runner and reads its answer. The answer is not trusted: its bytes, depth, fields and output are bounded. */
import {
  boundsAround,
  EVENT_LINES,
  OUTPUT_STREAMS,
  type RoundResponse,
  type RunEvent,
  roundResponseSchema,
  type TraceContext,
} from "@svc/contracts";
import { type Config, type InnerClient, jsonAnswer } from "@svc/service-kit";
import { readEventLines } from "./event-lines.ts";

/** One byte of output takes at most this many bytes in JSON. */
const JSON_FACTOR = 6;
/** Events repeat the output, in pieces. */
const EVENTS_FACTOR = 2;
/** For what an answer holds besides output: file names, as many as are allowed. */
const MAX_REST_BYTES = 16 * 1024 * 1024;
/** For the notes after a program's stderr, some of which name files. */
const MAX_NOTES = 64 * 1024;
/** A pause holds arguments in a list of calls. */
const ANSWER_BOUNDS = boundsAround(4);

export interface Round {
  path: string;
  /** JSON. */
  body: string;
  requestId: string;
  signal: AbortSignal;
  trace?: TraceContext | undefined;
  /** Absent: the caller does not want output while the program runs. */
  tell?: ((event: RunEvent) => void) | undefined;
  bounds: AnswerBounds;
}

export interface AnswerBounds {
  /** Largest answer without events. */
  maxBytes: number;
  /** Longest text of each output stream, in UTF-16 code units: one byte becomes at most one. */
  maxText: number;
}

export async function askRound(
  client: InnerClient,
  { path, body, requestId, signal, trace, tell, bounds }: Round,
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
  const { maxBytes, maxText } = bounds;
  const answer = await client.read(response, (received) =>
    tell === undefined || !String(response.headers["content-type"]).startsWith(EVENT_LINES)
      ? jsonAnswer(received, maxBytes, ANSWER_BOUNDS)
      : readEventLines(received.body, tell, {
          maxBytes: EVENTS_FACTOR * maxBytes,
          maxText,
          bounds: ANSWER_BOUNDS,
        }),
  );
  const round = roundResponseSchema.parse(answer);
  for (const stream of OUTPUT_STREAMS)
    if (round[stream].length > maxText) throw new Error(`${stream} is longer than ${maxText} characters`);
  return round;
}

export function answerBounds(config: Config): AnswerBounds {
  const output = largestOutput(config);
  return {
    maxBytes: OUTPUT_STREAMS.length * JSON_FACTOR * output + MAX_REST_BYTES,
    maxText: output + MAX_NOTES,
  };
}

/** The largest output that a run of any language may have. */
function largestOutput({ SANDBOX_OUTPUT_MAX_SIZE, SANDBOX_LIMIT_OVERRIDES }: Config): number {
  const own = Object.values(SANDBOX_LIMIT_OVERRIDES).map(({ output_max_size: size }) => size ?? 0);
  return Math.max(SANDBOX_OUTPUT_MAX_SIZE, ...own);
}
