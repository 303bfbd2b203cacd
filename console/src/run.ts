/** Follows one run: its output as it arrives, then how it ended. */
import type { RunEvent } from "../../packages/client/src/events.ts";
import type { Result } from "../../packages/client/src/results.ts";
import type { Output } from "./output.ts";

/** Rejects with the error of the service, or the signal's reason when it was stopped. */
export async function follow(events: AsyncIterable<RunEvent>, output: Output): Promise<Result> {
  for await (const event of events) {
    if (event.type === "stdout" || event.type === "stderr") output.add(event.type, event.text);
    else if (event.type === "result") return event.result;
  }
  throw new Error("The answer ended without a result.");
}

/** Describes the end of a run. For output beyond its limit it says how much the service kept; no more can be downloaded. */
export function endOf({ code, status, signal, message, stdout, stderr }: Result): string {
  if (status !== null && status !== undefined) {
    const kept = status === "OL" ? stdout : status === "EL" ? stderr : undefined;
    const cut =
      kept === undefined ? "" : `; its first ${kept.length.toLocaleString("en")} characters are kept`;
    return `Ended: ${status}${message ? `, ${message}` : ""}${cut}`;
  }
  if (signal !== null && signal !== undefined) return `Ended by ${signal}`;
  return `Ended with exit code ${code}`;
}
