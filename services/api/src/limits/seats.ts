/**
 * The seats that this process holds: each stands for one execution that a principal has waiting or running, or, counted beside these, for one
 * further round of its programs. They are renewed while held and end by themselves soon after the process has died. A seat that cannot be given back to a store
 * that is away ends the same way. A principal that already holds or asks for all of its seats in this
 * process is refused without the store, so that a flood costs the store nothing.
 */
import type { Principal } from "@svc/contracts";
import { type FastifyRequest, type LuaCommand, luaCommand, type Redis } from "@svc/service-kit";
import type { Window } from "./window.ts";

export const SEAT_LIFE_MS = 10_000;
const RENEW_MS = 3000;
const RENEW = new URL("./lua/renew.lua", import.meta.url);

/**
 * Runs work of a request so that its seat stays taken until the work has ended. `place`: how many executions the principal had
 * waiting or running when this one came, with it; 1 where seats are not counted.
 */
export type HoldingSeat = <T>(request: FastifyRequest, work: (place: number) => Promise<T>) => Promise<T>;

/** Runs a further round of a program of the principal with a seat for it, or refuses it before it begins. */
export type HoldingRound = <T>(principal: Principal, work: () => Promise<T>) => Promise<T>;

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

/** What the store answered: how many seats the principal holds with the one that was taken, else 0; and the window that it counted in. */
interface Asked {
  place: number;
  window?: Window;
}

/** What this process knows of a principal. */
interface Held {
  ids: Set<string>;
  /** Seats that the store was asked for and has not answered for yet. */
  asked: number;
  /** The window of the last request that the store counted, and when that was. */
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

  /** Whether `most` of the caller's seats are held here or asked for. */
  areHeld(key: string, most: number): boolean {
    const { ids, asked } = this.#held.get(key) ?? NOTHING;
    return ids.size + asked >= most;
  }

  /** The caller's window where `most` of its requests have a seat here or are asking for one; undefined: ask the store. */
  fullWindow(key: string, most: number): Window | undefined {
    const { last } = this.#held.get(key) ?? NOTHING;
    if (last === undefined || !this.areHeld(key, most)) return undefined;
    const leftMs = last.window.leftMs - (performance.now() - last.atMs);
    return leftMs > 0 ? { ...last.window, leftMs } : undefined;
  }

  /** Asks the store for the seat `id`, and keeps the window where it tells one. It is taken where its place is not 0. */
  async ask<A extends Asked>(key: string, id: string, call: () => Promise<A>): Promise<A & { seat?: Seat }> {
    const held = this.#heldOf(key);
    held.asked++;
    try {
      const asked = await call();
      if (asked.window !== undefined) held.last = { window: asked.window, atMs: performance.now() };
      return asked.place === 0 ? asked : { ...asked, seat: this.hold(key, id, asked.place) };
    } catch (error) {
      // A call that was given up may still reach the store.
      this.giveBack(key, id);
      throw error;
    } finally {
      // In the same turn in which the seat is held: it never counts twice.
      held.asked--;
      this.#forget(key, held);
    }
  }

  /** Looks after a seat that was just taken. */
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

  /** Frees a seat, also one that was asked for in vain: what is sent later arrives later. */
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
