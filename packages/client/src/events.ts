/** Events of a running program. `result` is the last event; errors of the service are thrown. */
import type { ExecResponse } from "./api.generated.ts";
import { ConnectionLostError, SvcError } from "./error.ts";
import { CODES } from "./errors.generated.ts";
import { errorOf, type Http, parsed } from "./http.ts";
import { type Result, withFiles } from "./results.ts";
import { readEvents } from "./sse.ts";

export type RunningEvent =
  | { type: "started"; session_id: string; language: string; version: string }
  | { type: "stdout" | "stderr"; text: string }
  | { type: "file"; file: ExecResponse["files"][number] };

export type RunEvent = RunningEvent | { type: "result"; result: Result };

/** The events of a response. `Answer`: the data of its last event. Leaving the loop early closes the connection. */
export async function* eventsOf<Answer>(
  response: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<RunningEvent | { type: "answer"; answer: Answer }, void> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  if (!isStream) {
    // A service that does not stream.
    yield { type: "answer", answer: await parsed<Answer>(response, signal) };
    return;
  }
  try {
    for await (const { event, data } of readEvents(response.body ?? new ReadableStream())) {
      const told: unknown = JSON.parse(data);
      if (event === "error") throw errorOf(statusOf(told) ?? response.status, told);
      if (event === "result") {
        yield { type: "answer", answer: told as Answer };
        return;
      }
      if (event === "file") yield { type: "file", file: told as ExecResponse["files"][number] };
      else if (event === "started" || event === "stdout" || event === "stderr")
        yield { type: event, ...Object(told) } as RunningEvent;
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof SvcError) throw error;
    throw new ConnectionLostError(error);
  }
  throw new ConnectionLostError(new Error("The stream of events ended without a result."));
}

/** The usual status of the error's code. The status of the response does not help: it was sent before the program ran. */
const statusOf = (told: unknown): number | undefined => CODES[String(Object(told).error)]?.status;

export async function* runEvents(
  response: Response,
  http: Http,
  signal: AbortSignal | undefined,
): AsyncGenerator<RunEvent, void> {
  for await (const event of eventsOf<ExecResponse>(response, signal)) {
    if (event.type === "answer") yield { type: "result", result: withFiles(event.answer, http) };
    else yield event;
  }
}
