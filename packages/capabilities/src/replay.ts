/**
 * Remembers which manifests were used, for as long as they could be used again. Bounded: what no longer fits is not taken,
 * so a full memory refuses new manifests instead of forgetting old ones. It is the memory of one process. Pure but for
 * its state; the caller brings the clock.
 */
export class ReplayMemory {
  readonly #limit: number;
  /** Ids by the second in which they may be forgotten. */
  readonly #byEnd = new Map<number, string[]>();
  readonly #used = new Set<string>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#used.size;
  }

  /** Notes the use of `id`, which cannot be used after `end`. */
  use(id: string, end: number, now: number): "noted" | "used" | "full" {
    this.#sweep(now);
    if (this.#used.has(id)) return "used";
    if (this.#used.size >= this.#limit) return "full";
    this.#used.add(id);
    const ids = this.#byEnd.get(end);
    if (ids === undefined) this.#byEnd.set(end, [id]);
    else ids.push(id);
    return "noted";
  }

  /** Once a second at most. */
  #sweep(now: number): void {
    if (now <= this.#sweptAt) return;
    this.#sweptAt = now;
    for (const [end, ids] of this.#byEnd) {
      if (end >= now) continue;
      for (const id of ids) this.#used.delete(id);
      this.#byEnd.delete(end);
    }
  }
}
