/**
 * The seats that this process holds: each stands for one execution that a principal has waiting or running. They are
 * renewed while held and end by themselves soon after the process has died. A seat that cannot be given back to a store
 * that is away ends the same way.
 */
import { type FastifyRequest, type LuaCommand, luaCommand, type Redis } from "@svc/service-kit";

export const SEAT_LIFE_MS = 10_000;
const RENEW_MS = 3000;
const RENEW = new URL("./lua/renew.lua", import.meta.url);

/**
 * Runs work of a request so that its seat stays taken until the work has ended. `place`: how many executions the principal had
 * waiting or running when this one came, with it; 1 where seats are not counted.
 */
export type HoldingSeat = <T>(request: FastifyRequest, work: (place: number) => Promise<T>) => Promise<T>;

/** A taken seat. It is given back when nobody holds it any more. */
export class Seat {
  /** How many seats the principal held when this one was taken, with it. */
  readonly place: number;
  readonly #giveBack: () => void;
  #holders = 1;

  constructor(place: number, giveBack: () => void) {
    this.place = place;
    this.#giveBack = giveBack;
  }

  release(): void {
    if (--this.#holders === 0) this.#giveBack();
  }

  /** Holds the seat until the work has ended. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#holders++;
    try {
      return await work();
    } finally {
      this.release();
    }
  }
}

export class Seats {
  readonly #redis: Redis;
  readonly #renewSeats: LuaCommand<unknown>;
  readonly #held = new Map<string, Set<string>>();
  readonly #renewal: NodeJS.Timeout;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#renewSeats = luaCommand(redis, "svcRenewSeats", RENEW, 1);
    this.#renewal = setInterval(() => this.#renew(), RENEW_MS).unref();
  }

  /** Looks after a seat that was just taken. */
  hold(key: string, id: string, place: number): Seat {
    const ids = this.#held.get(key) ?? new Set();
    this.#held.set(key, ids.add(id));
    return new Seat(place, () => {
      ids.delete(id);
      if (ids.size === 0) this.#held.delete(key);
      this.giveBack(key, id);
    });
  }

  /** Frees a seat, also one that was asked for in vain: what is sent later arrives later. */
  giveBack(key: string, id: string): void {
    this.#redis.zrem(key, id).catch(() => undefined);
  }

  #renew(): void {
    for (const [key, ids] of this.#held) {
      this.#renewSeats(key, SEAT_LIFE_MS, ...ids).catch(() => undefined);
    }
  }

  close(): void {
    clearInterval(this.#renewal);
  }
}
