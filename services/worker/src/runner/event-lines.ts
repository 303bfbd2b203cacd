/**
 * Reads a runner's answer with events: lines of JSON, of which the last one holds the answer or the failure. All lines together stay
 * within the size that an answer may have. A program starts at most once, each output event has text, and the text of a stream stays
 * within the limit of its output; this also bounds the number of events.
 */
import {
  exceededJsonBound,
  type JsonBounds,
  type RunEvent,
  runEventSchema,
  runnerLastLineSchema,
} from "@svc/contracts";
import { innerErrorOf } from "@svc/service-kit";

/** `sessionId`: the storage session of the run's outputs. */
export type TellEvent = (event: RunEvent, sessionId: string) => void;

const NEWLINE = 0x0a;

/**
 * Resolves with the answer once the body has ended, so that its connection can be reused. Throws the failure of the last line, or an
 * Error for anything that no runner sends.
 */
export async function readEventLines(
  body: AsyncIterable<Buffer>,
  tell: (event: RunEvent) => void,
  { maxBytes, maxText, bounds }: { maxBytes: number; maxText: number; bounds: JsonBounds },
): Promise<unknown> {
  const admit = eventAdmission(maxText);
  let last: ReturnType<typeof runnerLastLineSchema.parse> | undefined;
  for await (const line of linesOf(body, maxBytes)) {
    if (last !== undefined) throw new Error("the answer goes on behind its last line");
    const exceeded = exceededJsonBound(line, bounds);
    if (exceeded !== undefined) throw new Error(`a line is beyond its bound of ${exceeded}`);
    const value: unknown = JSON.parse(line.toString("utf8"));
    if (typeof value === "object" && value !== null && "event" in value)
      tell(admit(runEventSchema.parse(value)));
    else last = runnerLastLineSchema.parse(value);
  }
  if (last === undefined) throw new Error("the answer ends before its last line");
  if ("failure" in last) throw innerErrorOf(last.failure.status, last.failure.body);
  return last.answer;
}

/** Throws for an event that no runner sends. */
function eventAdmission(maxText: number): (event: RunEvent) => RunEvent {
  let hasStarted = false;
  const told = { stdout: 0, stderr: 0 };
  return (event) => {
    if (event.event === "started") {
      if (hasStarted) throw new Error("the program starts twice");
      hasStarted = true;
      return event;
    }
    told[event.event] += event.text.length;
    if (event.text === "" || told[event.event] > maxText)
      throw new Error(`an event of ${event.event} has no text, or too much`);
    return event;
  };
}

async function* linesOf(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)]);
      begun = [];
      from = end + 1;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
  }
}
