/**
 * Issues calls in the order in which their connections were accepted, which is the order in which the program made them.
 * A complete request waits for earlier connections, but only briefly: a slow connection delays no other.
 */

/** How long a complete request waits for earlier ones. */
const ORDER_MS = 20;

export class ArrivalOrder<T> {
  readonly #issue: (item: T) => void;
  /** Accepted connections with an incomplete request, and complete requests that wait behind one. In the order of acceptance. */
  readonly #places = new Map<number, { item?: T; late: boolean }>();
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(issue: (item: T) => void) {
    this.#issue = issue;
  }

  /** Gives a new connection its place in the order. */
  accepted(): number {
    const place = this.#next++;
    this.#places.set(place, { late: false });
    return place;
  }

  complete(place: number, item: T): void {
    if (!this.#places.has(place)) return;
    this.#places.set(place, { item, late: false });
    this.#release();
  }

  /** The connection closed without a call. */
  gone(place: number): void {
    const entry = this.#places.get(place);
    if (entry === undefined || entry.item !== undefined) return;
    this.#places.delete(place);
    this.#release();
  }

  /** Number of incomplete requests, and of complete ones that wait. */
  get waiting(): number {
    return this.#places.size;
  }

  #release(): void {
    let held = false;
    for (const [place, { item, late }] of this.#places) {
      if (item === undefined) {
        held ||= !late;
        continue;
      }
      if (held) {
        this.#soon();
        return;
      }
      this.#places.delete(place);
      this.#issue(item);
    }
  }

  /** After this delay, connections that are still incomplete no longer delay others. */
  #soon(): void {
    this.#timer ??= setTimeout(() => this.flush(), ORDER_MS);
  }

  /** Issues all complete requests now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const entry of this.#places.values()) entry.late = true;
    this.#release();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#places.clear();
  }
}
