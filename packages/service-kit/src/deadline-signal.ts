/**
 * The signal of one piece of work: aborted by its caller's, or when its time is over. It lets go of both when the work ends;
 * AbortSignal.timeout() would hold its timer, and all that is tied to it, until the deadline.
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

  /** Its time was over before anything else ended it. */
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
