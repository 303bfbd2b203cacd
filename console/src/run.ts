/** One run: its output while it comes, then how it ended. */
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

export function endOf({ code, status, signal }: Result): string {
  if (status !== null && status !== undefined) return `Ended: ${status}`;
  if (signal !== null && signal !== undefined) return `Ended by ${signal}`;
  return `Ended with exit code ${code}`;
}
