/**
 * Remembers which manifests were used, for as long as they could be used again. Bounded: what no longer fits is not taken,
 * so a full memory refuses new manifests instead of forgetting old ones. It is the memory of one process. Nothing is forgotten
 * because a clock was set: its end has to come by the clock and by the time that has passed. Pure but for its state; the caller brings
 * both, in seconds.
 */
interface Ending {
  ids: string[];
  /** When they may be forgotten by the time that has passed. */
  passed: number;
}

export class ReplayMemory {
  readonly #limit: number;
  /** Ids by the second of the clock in which they may be forgotten. */
  readonly #byEnd = new Map<number, Ending>();
  readonly #used = new Set<string>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#used.size;
  }

  /** Notes the use of `id`, which cannot be used after `end`. `passed`: by a clock that nobody sets. */
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

  /** Once a second at most. */
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
