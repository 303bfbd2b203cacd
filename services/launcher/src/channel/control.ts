/**
 * The wire by which a guest's first program is told the time and random bytes: a message of 80 bytes (seconds and nanoseconds since the
 * epoch, 8 bytes each in the guest's order, then SEED_BYTES for the kernel's pool), which it confirms with one byte. A guest that says
 * more, or does not confirm in time, is hostile or stands still.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";

const SEED_BYTES = 64;
const NS = 1_000_000_000n;

export function encodeUpdate(epochNs: bigint, seed: Buffer): Buffer {
  const message = Buffer.alloc(16 + SEED_BYTES);
  message.writeBigUInt64LE(epochNs / NS, 0);
  message.writeBigUInt64LE(epochNs % NS, 8);
  seed.copy(message, 16, 0, SEED_BYTES);
  return message;
}

export class Control {
  readonly #wire: Duplex;
  readonly #onFail: (error: Error) => void;
  #unconfirmed: PromiseWithResolvers<void> | undefined;

  constructor(wire: Duplex, onFail: (error: Error) => void) {
    this.#wire = wire;
    this.#onFail = onFail;
    wire.on("data", (bytes: Buffer) => {
      if (bytes.length !== 1 || this.#unconfirmed === undefined)
        return this.#fail(new Error("a message that nobody asked for"));
      this.#unconfirmed.resolve();
      this.#unconfirmed = undefined;
    });
    wire.on("error", (error) => this.#fail(error));
    wire.on("close", () => this.#fail(new Error("the guest has ended")));
  }

  #fail(error: Error): void {
    this.#unconfirmed?.reject(error);
    this.#onFail(error);
  }

  /** Sets the guest's clock and renews what its random numbers come from. One at a time. `now`: in ms since the epoch. */
  async update(limitMs: number, now = Date.now()): Promise<void> {
    const confirmed = Promise.withResolvers<void>();
    const timer = setTimeout(() => confirmed.reject(new Error("the guest does not take the time")), limitMs);
    this.#unconfirmed = confirmed;
    if (this.#wire.destroyed) confirmed.reject(new Error("the guest has ended"));
    this.#wire.write(encodeUpdate(BigInt(now) * 1_000_000n, randomBytes(SEED_BYTES)));
    try {
      await confirmed.promise;
    } catch (error) {
      this.#onFail(error as Error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
