/** Asks a runner for a round, and reads its answer, of which nothing is believed: it is bounded in bytes, depth, fields and output. */
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

/** JSON writes a character with as many bytes for each byte of output, at most. */
const JSON_FACTOR = 6;
/** Events tell the output once more, in pieces. */
const EVENTS_FACTOR = 2;
/** What an answer holds besides output: names of files, as many as there may be. */
const MAX_REST_BYTES = 16 * 1024 * 1024;
/** Behind a program's stderr: notes, of which some name files. */
const MAX_NOTES = 64 * 1024;
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
  bounds: AnswerBounds;
}

export interface AnswerBounds {
  /** Of an answer without events. */
  maxBytes: number;
  /** Of the text of each output stream, in characters as JavaScript counts them: no byte becomes more than one. */
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
