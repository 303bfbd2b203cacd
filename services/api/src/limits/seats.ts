/**
 * The seats that this process holds. Each stands for one waiting or running execution of a principal, or, counted separately, for one
 * further round of its programs. A seat is a lease in Redis: the process renews it, and it expires soon after the process dies, or when
 * Redis was unreachable at its release. A principal whose seats are all held or being requested in this process is refused without
 * asking Redis, so that a flood costs Redis nothing.
 */
import type { Principal } from "@svc/contracts";
import { type FastifyRequest, type LuaCommand, luaCommand, type Redis } from "@svc/service-kit";
import type { Window } from "./window.ts";

export const SEAT_LIFE_MS = 10_000;
const RENEW_MS = 3000;
const RENEW = new URL("./lua/renew.lua", import.meta.url);

/**
 * Runs work for a request and keeps its seat taken until the work has ended. `place`: how many executions the principal had waiting
 * or running when this one arrived, including this one; 1 when seats are not counted.
 */
export type HoldingSeat = <T>(request: FastifyRequest, work: (place: number) => Promise<T>) => Promise<T>;

/** Runs a further round of a program of the principal while holding a seat for it. Throws before the work begins when there is no seat. */
export type HoldingRound = <T>(principal: Principal, work: () => Promise<T>) => Promise<T>;

/** A taken seat, counted by its holders. The last release gives it back. */
export class Seat {
  /** How many seats the principal held when this one was taken, including this one. */
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

/** The reply from Redis. `place`: the principal's seats including the new one, or 0 when none was taken. `window`: where it was counted. */
interface Asked {
  place: number;
  window?: Window;
}

/** What this process knows about the seats of a principal. */
interface Held {
  ids: Set<string>;
  /** Seats that were requested from Redis and are not answered yet. */
  asked: number;
  /** The window of the last request that Redis counted, and when, by `performance.now()`. */
  last?: { window: Window; atMs: number };
}

export class Seats {
  readonly #redis: Redis;
  readonly #renewSeats: LuaCommand<unknown>;
  readonly #held = new Map<string, Held>();
  readonly #renewal: NodeJS.Timeout;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#renewSeats = luaCommand(redis, "svcRenewSeats", RENEW, 1);
    this.#renewal = setInterval(() => this.#renew(), RENEW_MS).unref();
  }

  /** Whether this process holds or requests at least `most` seats of the caller. */
  areHeld(key: string, most: number): boolean {
    const { ids, asked } = this.#held.get(key) ?? NOTHING;
    return ids.size + asked >= most;
  }

  /** The caller's window when this process holds or requests `most` of its seats; undefined: ask Redis. */
  fullWindow(key: string, most: number): Window | undefined {
    const { last } = this.#held.get(key) ?? NOTHING;
    if (last === undefined || !this.areHeld(key, most)) return undefined;
    const leftMs = last.window.leftMs - (performance.now() - last.atMs);
    return leftMs > 0 ? { ...last.window, leftMs } : undefined;
  }

  /** Requests the seat `id` from Redis, and remembers the window if the reply has one. The seat is taken when `place` is not 0. */
  async ask<A extends Asked>(key: string, id: string, call: () => Promise<A>): Promise<A & { seat?: Seat }> {
    const held = this.#heldOf(key);
    held.asked++;
    try {
      const asked = await call();
      if (asked.window !== undefined) held.last = { window: asked.window, atMs: performance.now() };
      return asked.place === 0 ? asked : { ...asked, seat: this.hold(key, id, asked.place) };
    } catch (error) {
      // A call that timed out may still reach Redis.
      this.giveBack(key, id);
      throw error;
    } finally {
      // This runs in the same event-loop turn as `hold`, so the seat never counts twice.
      held.asked--;
      this.#forget(key, held);
    }
  }

  /** Registers a seat that was just taken, so that it is renewed until its release. */
  hold(key: string, id: string, place: number): Seat {
    const held = this.#heldOf(key);
    held.ids.add(id);
    return new Seat(place, () => {
      held.ids.delete(id);
      this.#forget(key, held);
      this.giveBack(key, id);
    });
  }

  #heldOf(key: string): Held {
    const held = this.#held.get(key) ?? { ids: new Set(), asked: 0 };
    this.#held.set(key, held);
    return held;
  }

  #forget(key: string, { ids, asked }: Held): void {
    if (ids.size + asked === 0) this.#held.delete(key);
  }

  /** Frees a seat, even one whose request failed: this command is sent later, so Redis executes it later. */
  giveBack(key: string, id: string): void {
    this.#redis.zrem(key, id).catch(() => undefined);
  }

  #renew(): void {
    for (const [key, { ids }] of this.#held) {
      if (ids.size > 0) this.#renewSeats(key, SEAT_LIFE_MS, ...ids).catch(() => undefined);
    }
  }

  close(): void {
    clearInterval(this.#renewal);
  }
}

const NOTHING: Held = { ids: new Set(), asked: 0 };
