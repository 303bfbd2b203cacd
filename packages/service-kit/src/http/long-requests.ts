/**
 * Requests that wait for others for seconds or minutes. A stopping component ends them, because each would delay the stop. It also
 * ends those that arrive later on open connections.
 */
import { ServiceError } from "@svc/contracts";

export class LongRequests {
  readonly #open = new Set<AbortController>();
  #isStopping = false;

  /** How many requests wait. */
  get size(): number {
    return this.#open.size;
  }

  /** Aborts `wait` when the component stops, or at once when it is already stopping. The client then repeats the request elsewhere. */
  begin(wait: AbortController): void {
    this.#open.add(wait);
    if (this.#isStopping) wait.abort(stopping());
  }

  end(wait: AbortController): void {
    this.#open.delete(wait);
  }

  /** Ends all with `shutting_down`. */
  stop(): void {
    this.#isStopping = true;
    for (const wait of this.#open) wait.abort(stopping());
  }
}

const stopping = () => new ServiceError("shutting_down", undefined, { headers: { connection: "close" } });
