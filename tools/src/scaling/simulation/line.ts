/** The queue before the workers: lower places first, those of one place in the order in which they came. */
import { Heap } from "./heap.ts";

interface Entry<T> {
  item: T;
  place: number;
  order: number;
}

export class Line<T> {
  readonly #heap = new Heap<Entry<T>>(
    (left, right) => left.place < right.place || (left.place === right.place && left.order < right.order),
  );
  readonly #waiting = new Set<T>();
  #made = 0;

  get length(): number {
    return this.#waiting.size;
  }

  push(item: T, place: number): void {
    this.#waiting.add(item);
    this.#heap.push({ item, place, order: this.#made++ });
  }

  /** Whether it still waited. */
  giveUp(item: T): boolean {
    return this.#waiting.delete(item);
  }

  pop(): T | undefined {
    for (let entry = this.#heap.pop(); entry !== undefined; entry = this.#heap.pop()) {
      if (this.#waiting.delete(entry.item)) return entry.item;
    }
    return undefined;
  }
}
