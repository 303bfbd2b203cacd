/**
 * Prefetches grants for owners with recent traffic: one per run of the last second. A first run gets none; unused grants are
 * released after some seconds. Holds state and does no I/O; times are in milliseconds of one monotonic clock.
 */
import { MAX_PREFETCHED_GRANTS } from "@svc/contracts";

const RECENT_MS = 1000;
export const UNUSED_MS = 5000;
const MAX_OWNERS = 256;

interface Ready<T> {
  grant: T;
  endsMs: number;
}

interface Owner<T> {
  /** Times of the latest runs. */
  runs: number[];
  ready: Ready<T>[];
  /** Number of grants that were requested and have not arrived. */
  requested: number;
}

export class GrantPrefetch<T> {
  /** Ordered by latest run, oldest first. */
  readonly #owners = new Map<string, Owner<T>>();
  readonly #release: (grant: T) => void;

  constructor(release: (grant: T) => void) {
    this.#release = release;
  }

  /** Counts a run of an owner, and returns a prefetched grant that is valid until `untilMs`, if there is one. */
  take(owner: string, untilMs: number, nowMs: number): T | undefined {
    const { runs, ready } = this.#touch(owner);
    runs.push(nowMs);
    if (runs.length > MAX_PREFETCHED_GRANTS + 1) runs.shift();
    for (let first = ready.shift(); first !== undefined; first = ready.shift()) {
      if (first.endsMs >= untilMs) return first.grant;
      this.#release(first.grant);
    }
    return undefined;
  }

  /**
   * How many grants to request for an owner now: none while more than half of the
   * wanted number is ready or requested. `made` must follow.
   */
  begin(owner: string, nowMs: number): number {
    const entry = this.#owners.get(owner);
    if (entry === undefined) return 0;
    const others = entry.runs.filter((time) => nowMs - time < RECENT_MS).length - 1;
    const held = entry.ready.length + entry.requested;
    if (others <= 0 || held * 2 > others) return 0;
    const missing = others - held;
    entry.requested += missing;
    return missing;
  }

  /** Adds the grants that arrived. `begun`: the number that `begin` returned. */
  made(owner: string, begun: number, grants: readonly T[], endsMs: number): void {
    const entry = this.#owners.get(owner);
    if (entry === undefined) {
      grants.forEach(this.#release);
      return;
    }
    entry.requested = Math.max(0, entry.requested - begun);
    for (const grant of grants) entry.ready.push({ grant, endsMs });
  }

  /** Releases the grants of owners without a run for UNUSED_MS. */
  expire(nowMs: number): void {
    for (const [owner, { runs }] of this.#owners) {
      if (nowMs - (runs.at(-1) ?? 0) < UNUSED_MS) return;
      this.#drop(owner);
    }
  }

  /** Releases all grants. */
  clear(): void {
    for (const owner of this.#owners.keys()) this.#drop(owner);
  }

  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  #touch(owner: string): Owner<T> {
    const entry = this.#owners.get(owner) ?? { runs: [], ready: [], requested: 0 };
    this.#owners.delete(owner);
    const [oldest] = this.#owners.keys();
    if (this.#owners.size >= MAX_OWNERS && oldest !== undefined) this.#drop(oldest);
    this.#owners.set(owner, entry);
    return entry;
  }

  #drop(owner: string): void {
    const ready = this.#owners.get(owner)?.ready ?? [];
    this.#owners.delete(owner);
    for (const { grant } of ready) this.#release(grant);
  }
}
