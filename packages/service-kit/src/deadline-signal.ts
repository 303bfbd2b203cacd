/**
 * An AbortSignal for one piece of work. It aborts when the caller's signal aborts or when the time is over. `end` releases the
 * timer and the listener; AbortSignal.timeout() would hold its timer, and everything attached to it, until the deadline.
 */
export class DeadlineSignal {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  #isLate = false;

  constructor(caller: AbortSignal, ms: number) {
    this.#caller = caller;
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.#abort(new DOMException("the time is over", "TimeoutError"));
    }, ms);
    if (caller.aborted) this.#left();
    else caller.addEventListener("abort", this.#left, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the time was over before anything else ended the work. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Gives the work its whole time again. Only before its end. */
  restart(): void {
    this.#timer.refresh();
  }

  readonly #left = (): void => this.#abort(this.#caller.reason);

  #abort(reason: unknown): void {
    this.end();
    this.#controller.abort(reason);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener("abort", this.#left);
  }
}
