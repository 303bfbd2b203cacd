/**
 * Takes the jobs of one way, each with a permit: a full worker leaves them to others. The store is asked as often as jobs
 * were heard of, at once or when a permit is free, until it has none.
 */
import type { Permits } from "./permits.ts";

/** A job that was taken. Calls `release` when it needs its permit no more, or ends. Never rejects. */
export type Task = (release: () => void) => Promise<void>;

/** More jobs than can be waiting. */
const MANY = 2 ** 32;

export class Intake {
  readonly #permits: Permits;
  readonly #take: () => Promise<Task | undefined>;
  readonly #inWork = new Set<Promise<void>>();
  #expected = 0;
  #isTaking = false;
  #taking = Promise.resolve();
  #isClosed = false;

  /** `take`: the job that waits longest, or undefined. Never rejects. */
  constructor(permits: Permits, take: () => Promise<Task | undefined>) {
    this.#permits = permits;
    this.#take = take;
    permits.onFree(() => this.#fill());
  }

  /** One more job may be waiting. */
  expect(): void {
    this.#expected = Math.min(this.#expected + 1, MANY);
    this.#fill();
  }

  /** Nobody knows how many are waiting. */
  look(): void {
    this.#expected = MANY;
    this.#fill();
  }

  #fill(): void {
    if (this.#isTaking) return;
    this.#isTaking = true;
    this.#taking = this.#takeAll();
  }

  async #takeAll(): Promise<void> {
    while (this.#expected > 0 && !this.#isClosed && this.#permits.tryTake()) {
      const expected = this.#expected--;
      const task = await this.#take();
      if (task === undefined) {
        // What was heard of meanwhile may have come too late for this answer.
        this.#expected -= expected - 1;
        this.#permits.giveBack();
      } else {
        this.#begin(task);
      }
    }
    this.#isTaking = false;
  }

  #begin(task: Task): void {
    let isHeld = true;
    const release = () => {
      if (isHeld) this.#permits.giveBack();
      isHeld = false;
    };
    const end = task(release).finally(() => {
      release();
      this.#inWork.delete(end);
    });
    this.#inWork.add(end);
  }

  /** Takes no more, and waits for those in work and for the one that is on its way from the store. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#taking;
    await Promise.all(this.#inWork);
  }
}
