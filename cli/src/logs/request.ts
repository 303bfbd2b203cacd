/** Selects the log lines of one request: lines with its id, and lines of the executions that these lines name. */
import type { LogRecord } from "./record.ts";

export class RequestFilter {
  readonly #requestId: string;
  readonly #executions = new Set<string>();

  constructor(requestId: string) {
    this.#requestId = requestId;
  }

  /** Whether the text of a line contains one of the ids. Most lines do not, and need not be parsed as JSON. */
  mayConcern(line: string): boolean {
    if (line.includes(this.#requestId)) return true;
    for (const id of this.#executions) if (line.includes(id)) return true;
    return false;
  }

  /** Remembers the execution of a line that names the request. Must be called for all lines before `isMeant`. */
  learn({ fields }: LogRecord): void {
    if (fields?.request_id === this.#requestId && typeof fields.exec_id === "string") {
      this.#executions.add(fields.exec_id);
    }
  }

  isMeant({ fields }: LogRecord): boolean {
    if (fields === undefined) return false;
    return fields.request_id === this.#requestId || this.#executions.has(executionOf(fields));
  }
}

/** Lines of the queue name the job: `EXECUTION` or, for a round of a program with tools, `EXECUTION.ROUND.ATTEMPT`. */
function executionOf({ exec_id, job }: Readonly<Record<string, unknown>>): string {
  return String(exec_id ?? String(job).split(".")[0]);
}
