/**
 * Replay protection: remembers which manifests were used, for as long as they could be used again. Bounded: when it is full, it
 * refuses new manifests instead of forgetting old ones. It belongs to one process. Setting a clock forgets nothing: an entry expires
 * only when its end has passed by the wall clock and by the monotonic clock. Apart from its state it is pure: the caller passes
 * in both times, in seconds.
 */
interface Ending {
  ids: string[];
  /** When the ids may be forgotten by the monotonic clock. */
  passed: number;
}

export class ReplayMemory {
  readonly #limit: number;
  /** Ids by the second of the wall clock after which they may be forgotten. */
  readonly #byEnd = new Map<number, Ending>();
  readonly #used = new Set<string>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#used.size;
  }

  /** Records the use of `id`, which is not valid after `end`. `now`: wall clock. `passed`: monotonic clock. */
  use(id: string, end: number, now: number, passed: number): "noted" | "used" | "full" {
    this.#sweep(now, passed);
    if (this.#used.has(id)) return "used";
    if (this.#used.size >= this.#limit) return "full";
    this.#used.add(id);
    const ending = this.#byEnd.get(end) ?? { ids: [], passed: 0 };
    ending.ids.push(id);
    ending.passed = Math.max(ending.passed, passed + end - now);
    this.#byEnd.set(end, ending);
    return "noted";
  }

  /** Forgets expired ids. Runs at most once a second. */
  #sweep(now: number, passed: number): void {
    if (passed <= this.#sweptAt) return;
    this.#sweptAt = passed;
    for (const [end, { ids, passed: last }] of this.#byEnd) {
      if (end >= now || last >= passed) continue;
      for (const id of ids) this.#used.delete(id);
      this.#byEnd.delete(end);
    }
  }
}
