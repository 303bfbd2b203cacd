/**
 * Counts the requests of each principal in Redis, across all replicas, in one round trip per call. It trusts the given principal.
 * It fails closed: while Redis is unreachable no request passes.
 */
import { createHash } from "node:crypto";
import { newId, type Principal } from "@svc/contracts";
import { type Config, type LuaCommand, luaCommand, type Redis, storeCall } from "@svc/service-kit";
import { limitOf, type Scope } from "./scopes.ts";
import { SEAT_LIFE_MS, type Seat, Seats } from "./seats.ts";
import {
  isOver,
  type RateLimited,
  roundsAreTaken,
  seatsAreTaken,
  type Window,
  windowIsFull,
} from "./window.ts";

const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);

export interface Entry {
  window: Window;
  refusal?: RateLimited;
  seat?: Seat;
}

type Reply = [count: number, leftMs: number, place: number];

export class Limiter {
  readonly #config: Config;
  readonly #enter: LuaCommand<Reply>;
  readonly #takeSeat: LuaCommand<number>;
  readonly #seats: Seats;

  constructor(config: Config, redis: Redis) {
    this.#config = config;
    this.#enter = luaCommand(redis, "svcEnter", [script("seat"), script("enter")]);
    this.#takeSeat = luaCommand(redis, "svcTakeSeat", [script("seat"), script("take-seat")], 1);
    this.#seats = new Seats(redis);
  }

  /** Counts a request. An execution also takes a seat, unless SVC_MAX_CONCURRENT_EXECUTIONS is 0, which means no limit. */
  async enter(
    scope: Scope,
    principal: Principal,
    isExecution: boolean = scope === "executions",
  ): Promise<Entry> {
    const limit = limitOf(scope, this.#config);
    const most = this.#config.SVC_MAX_CONCURRENT_EXECUTIONS;
    const caller = callerKey(principal);
    const key = `svc:limit:${scope}:${caller}`;
    if (isExecution && most > 0) return this.#enterWithSeat(scope, key, `svc:seats:${caller}`);
    const [count, leftMs] = await storeCall(() => this.#enter(1, key, limit.requests, limit.windowMs));
    return entryOf(scope, { ...limit, count, leftMs });
  }

  async #enterWithSeat(scope: Scope, key: string, seats: string): Promise<Entry> {
    const { requests, windowMs } = limitOf(scope, this.#config);
    const most = this.#config.SVC_MAX_CONCURRENT_EXECUTIONS;
    const full = this.#seats.fullWindow(seats, most);
    if (full !== undefined) return withoutSeat(full, most);
    const id = newId();
    const { window, seat } = await this.#seats.ask(seats, id, async () => {
      const [count, leftMs, place] = await storeCall(() =>
        this.#enter(2, key, seats, requests, windowMs, id, most, SEAT_LIFE_MS),
      );
      return { window: { requests, windowMs, count, leftMs }, place };
    });
    if (seat !== undefined) return { window, seat };
    return isOver(window) ? entryOf(scope, window) : withoutSeat(window, most);
  }

  /**
   * Runs a further round of a program of the principal. It takes a seat for resumes; there are as many as for executions, counted
   * separately. Throws when all are taken.
   */
  async duringRound<T>(principal: Principal, work: () => Promise<T>): Promise<T> {
    const seat = await this.#roundSeat(`svc:rounds:${callerKey(principal)}`);
    try {
      return await work();
    } finally {
      seat?.release();
    }
  }

  async #roundSeat(seats: string): Promise<Seat | undefined> {
    const most = this.#config.SVC_MAX_CONCURRENT_EXECUTIONS;
    if (most === 0) return undefined;
    if (this.#seats.areHeld(seats, most)) throw roundsAreTaken(most);
    const id = newId();
    const { seat } = await this.#seats.ask(seats, id, async () => ({
      place: await storeCall(() => this.#takeSeat(seats, id, most, SEAT_LIFE_MS)),
    }));
    if (seat === undefined) throw roundsAreTaken(most);
    return seat;
  }

  close(): void {
    this.#seats.close();
  }
}

function entryOf(scope: Scope, window: Window): Entry {
  if (!isOver(window)) return { window };
  return { window, refusal: windowIsFull(scope, window) };
}

const withoutSeat = (window: Window, most: number): Entry => ({
  window,
  refusal: seatsAreTaken(most),
});

/** A digest: its length does not depend on the ids, and no two principals share one. */
export function callerKey({ tenantId, userId }: Principal): string {
  return createHash("sha256")
    .update(JSON.stringify([tenantId, userId]))
    .digest("base64url");
}
