/** The server-sent events of a run, up to its result. */
import { EventSourceParserStream } from "eventsource-parser/stream";
import { refusalOfEvent } from "./refusal.ts";
import { type OnOutput, ServiceRefusal } from "./service.ts";

/** Of one event: the result holds both outputs once more, and the list of files. */
const MAX_EVENT_CHARS = 16 * 2 ** 20;

/** Tells outputs while they come, and answers the data of the event `result`. */
export async function resultOf({ body }: Response, onOutput: OnOutput): Promise<unknown> {
  if (body === null) throw brokenOff();
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ maxBufferSize: MAX_EVENT_CHARS }));
  for await (const { event, data } of events) {
    if (event === "result") return parsed(data);
    if (event === "error") throw refusalOfEvent(parsed(data));
    if (event === "stdout" || event === "stderr") {
      const { text } = parsed(data) as { text?: unknown };
      if (typeof text === "string") onOutput(event, text);
    }
  }
  throw brokenOff();
}

const brokenOff = () => new ServiceRefusal("The answer of the service broke off before the run's result.");

function parsed(data: string): object {
  try {
    return Object(JSON.parse(data));
  } catch (cause) {
    throw new ServiceRefusal("The service sent an event that is not JSON.", undefined, { cause });
  }
}
