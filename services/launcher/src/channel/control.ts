/**
 * The control wire. The launcher sends the time and random bytes to the guest's first program (guest/init.c). A message has 80 bytes: seconds and
 * nanoseconds since the epoch (8 bytes each, in the guest's byte order), then SEED_BYTES for the kernel's entropy pool. The guest confirms it
 * with 16 bytes: the time of its clock afterwards, in the same form. A guest that sends more, or does not confirm in time, is hostile or hangs.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";

const TIME_BYTES = 16;
const SEED_BYTES = 64;
/** Largest accepted clock difference: certificates, tokens and file times depend on the clock. */
const MAX_DRIFT_MS = 5000;
const NS = 1_000_000_000n;
const NS_PER_MS = 1_000_000n;

export function encodeUpdate(epochNs: bigint, seed: Buffer): Buffer {
  const message = Buffer.alloc(TIME_BYTES + SEED_BYTES);
  message.writeBigUInt64LE(epochNs / NS, 0);
  message.writeBigUInt64LE(epochNs % NS, 8);
  seed.copy(message, TIME_BYTES, 0, SEED_BYTES);
  return message;
}

/** In ms since the epoch. It may be any number, because a guest wrote it. */
function decodeTime(bytes: Buffer): number {
  return Number((bytes.readBigUInt64LE(0) * NS + bytes.readBigUInt64LE(8)) / NS_PER_MS);
}

export class Control {
  readonly #wire: Duplex;
  readonly #onFail: (error: Error) => void;
  #unconfirmed: PromiseWithResolvers<number> | undefined;
  #held: Buffer = Buffer.alloc(0);

  constructor(wire: Duplex, onFail: (error: Error) => void) {
    this.#wire = wire;
    this.#onFail = onFail;
    wire.on("data", (bytes: Buffer) => this.#take(bytes));
    wire.on("error", (error) => this.#fail(error));
    wire.on("close", () => this.#fail(new Error("the guest has ended")));
  }

  #take(bytes: Buffer): void {
    if (this.#unconfirmed === undefined || this.#held.length + bytes.length > TIME_BYTES) {
      this.#fail(new Error("a message that nobody asked for"));
      return;
    }
    this.#held = Buffer.concat([this.#held, bytes]);
    if (this.#held.length < TIME_BYTES) return;
    this.#unconfirmed.resolve(decodeTime(this.#held));
    this.#unconfirmed = undefined;
    this.#held = Buffer.alloc(0);
  }

  #fail(error: Error): void {
    this.#unconfirmed?.reject(error);
    this.#onFail(error);
  }

  /**
   * Sets the guest's clock to `now` and reseeds its kernel's random numbers. One call at a time. `now` and the result, the time of the guest's
   * clock afterwards, are in ms since the epoch.
   */
  async update(limitMs: number, now = Date.now()): Promise<number> {
    const confirmed = Promise.withResolvers<number>();
    const timer = setTimeout(() => confirmed.reject(new Error("the guest does not take the time")), limitMs);
    this.#unconfirmed = confirmed;
    if (this.#wire.destroyed) confirmed.reject(new Error("the guest has ended"));
    this.#wire.write(encodeUpdate(BigInt(now) * NS_PER_MS, randomBytes(SEED_BYTES)));
    try {
      return await confirmed.promise;
    } catch (error) {
      this.#onFail(error as Error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Updates the guest; fails when its clock is off by more than MAX_DRIFT_MS afterwards. */
  async keepInStep(limitMs: number): Promise<void> {
    const driftMs = Math.abs(Date.now() - (await this.update(limitMs)));
    if (driftMs <= MAX_DRIFT_MS) return;
    const error = new Error(`the guest's clock is off by ${driftMs} ms`);
    this.#onFail(error);
    throw error;
  }
}
