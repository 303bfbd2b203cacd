/** Collects bytes that come in pieces: a piece costs its own bytes and no object, however small it is. */
const LEAST = 1024;

export class GrowingBuffer {
  #bytes = Buffer.alloc(0);
  #length = 0;

  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(LEAST, length, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }

  clear(): void {
    this.#bytes = Buffer.alloc(0);
    this.#length = 0;
  }

  /** A view: it shares the buffer's memory. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}
