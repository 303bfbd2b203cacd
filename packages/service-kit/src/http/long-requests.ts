/**
 * Requests that wait for what others do, for seconds or minutes. A component that stops ends them, also those that come after that on
 * connections that are open: each would keep it from ending for as long as it waits.
 */
import { ServiceError } from "@svc/contracts";

export class LongRequests {
  readonly #open = new Set<AbortController>();
  #isStopping = false;

  /** How many wait. */
  get size(): number {
    return this.#open.size;
  }

  /** `wait` is aborted when the component stops, or at once when it does already; its caller repeats the request elsewhere. */
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
