/** Bounds the bytes that all requests of a store hold in memory together. Served in the order of asking. */
export class ByteBudget {
  #free: number;
  readonly #total: number;
  readonly #waiting: { bytes: number; start: () => void }[] = [];

  constructor(total: number) {
    this.#free = total;
    this.#total = total;
  }

  async run<T>(bytes: number, operation: () => Promise<T>): Promise<T> {
    const taken = Math.min(bytes, this.#total);
    if (this.#waiting.length > 0 || taken > this.#free) {
      await new Promise<void>((start) => this.#waiting.push({ bytes: taken, start }));
    } else {
      this.#free -= taken;
    }
    try {
      return await operation();
    } finally {
      this.#free += taken;
      this.#startNext();
    }
  }

  #startNext(): void {
    for (
      let next = this.#waiting[0];
      next !== undefined && next.bytes <= this.#free;
      next = this.#waiting[0]
    ) {
      this.#waiting.shift();
      this.#free -= next.bytes;
      next.start();
    }
  }
}
