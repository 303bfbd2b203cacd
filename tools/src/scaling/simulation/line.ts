/** The queue before the workers: lower places first, and within one place in the order of arrival. */
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

  /** Removes a waiting item; false when it no longer waited. */
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
