/**
 * Grants for runs that will probably come. Who has programs run one after the other finds the grant of each made before: as
 * many are kept for him as he used within the last second. Who comes once has none made, and what is not used for some
 * seconds is given up. Pure but for its state; times are in milliseconds on any one clock.
 */
import { MAX_GRANTS_AHEAD } from "@svc/contracts";

const RECENT_MS = 1000;
export const UNUSED_MS = 5000;
const MAX_OWNERS = 256;

interface Ready<T> {
  grant: T;
  endsMs: number;
}

interface Owner<T> {
  /** Times of his latest runs. */
  runs: number[];
  ready: Ready<T>[];
  /** How many are being made. */
  making: number;
}

export class GrantsAhead<T> {
  /** The one whose latest run is longest ago comes first. */
  readonly #owners = new Map<string, Owner<T>>();
  readonly #giveUp: (grant: T) => void;

  constructor(giveUp: (grant: T) => void) {
    this.#giveUp = giveUp;
  }

  /** Counts a run of an owner and gives it a grant that is good until then, if one is ready. */
  take(owner: string, untilMs: number, nowMs: number): T | undefined {
    const { runs, ready } = this.#touch(owner);
    runs.push(nowMs);
    if (runs.length > MAX_GRANTS_AHEAD + 1) runs.shift();
    for (let first = ready.shift(); first !== undefined; first = ready.shift()) {
      if (first.endsMs >= untilMs) return first.grant;
      this.#giveUp(first.grant);
    }
    return undefined;
  }

  /** How many grants are to be made for an owner now; none while half of what he needs is there. Then `made` is to be called. */
  begin(owner: string, nowMs: number): number {
    const known = this.#owners.get(owner);
    if (known === undefined) return 0;
    const others = known.runs.filter((time) => nowMs - time < RECENT_MS).length - 1;
    const held = known.ready.length + known.making;
    if (others <= 0 || held * 2 > others) return 0;
    const missing = others - held;
    known.making += missing;
    return missing;
  }

  /** So many were to be made, and these were. */
  made(owner: string, begun: number, grants: readonly T[], endsMs: number): void {
    const known = this.#owners.get(owner);
    if (known === undefined) {
      grants.forEach(this.#giveUp);
      return;
    }
    known.making = Math.max(0, known.making - begun);
    for (const grant of grants) known.ready.push({ grant, endsMs });
  }

  /** Gives up what has not been used for long. */
  expire(nowMs: number): void {
    for (const [owner, { runs }] of this.#owners) {
      if (nowMs - (runs.at(-1) ?? 0) < UNUSED_MS) return;
      this.#drop(owner);
    }
  }

  /** Gives up all. */
  clear(): void {
    for (const owner of this.#owners.keys()) this.#drop(owner);
  }

  get isEmpty(): boolean {
    return this.#owners.size === 0;
  }

  #touch(owner: string): Owner<T> {
    const known = this.#owners.get(owner) ?? { runs: [], ready: [], making: 0 };
    this.#owners.delete(owner);
    const [oldest] = this.#owners.keys();
    if (this.#owners.size >= MAX_OWNERS && oldest !== undefined) this.#drop(oldest);
    this.#owners.set(owner, known);
    return known;
  }

  #drop(owner: string): void {
    const ready = this.#owners.get(owner)?.ready ?? [];
    this.#owners.delete(owner);
    for (const { grant } of ready) this.#giveUp(grant);
  }
}
