/** How many jobs of one kind a worker does at once, whichever way they come. Pure. */
export class Permits {
  #free: number;
  readonly #wanting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  giveBack(): void {
    this.#free++;
    for (const offer of this.#wanting) offer();
  }

  /** `offer` is called whenever a permit is free again, after those that were given before: in that turn, it may take some. */
  onFree(offer: () => void): void {
    this.#wanting.push(offer);
  }
}
