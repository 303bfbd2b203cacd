/**
 * Counts the requests of principals in Redis, for all replicas together. One call is one round trip. It trusts the principal
 * that it is given; a store that is away lets nothing through.
 */
import { createHash } from "node:crypto";
import { newId, type Principal, type ServiceError } from "@svc/contracts";
import { type Config, type LuaCommand, luaCommand, type Redis, storeCall } from "@svc/service-kit";
import { limitOf, SCOPES, type Scope } from "./scopes.ts";
import { SEAT_LIFE_MS, type Seat, Seats } from "./seats.ts";
import { isOver, seatsAreTaken, type Window, windowIsFull } from "./window.ts";

const ENTER = new URL("./lua/enter.lua", import.meta.url);

export interface Entry {
  window: Window;
  /** `by`: what limited the request, the window of its scope or the seats for executions. */
  refusal?: { by: Scope | "concurrent_executions"; error: ServiceError };
  seat?: Seat;
}

type Reply = [count: number, leftMs: number, place: number];

export class Limiter {
  readonly #config: Config;
  readonly #enter: LuaCommand<Reply>;
  readonly #seats: Seats;

  constructor(config: Config, redis: Redis) {
    this.#config = config;
    this.#enter = luaCommand(redis, "svcEnter", ENTER);
    this.#seats = new Seats(redis);
  }

  /** Counts a request; one of an execution also takes a seat, unless the number of seats is 0, without limit. */
  async enter(
    scope: Scope,
    principal: Principal,
    isExecution: boolean = scope === "executions",
  ): Promise<Entry> {
    const { what } = SCOPES[scope];
    const limit = limitOf(scope, this.#config);
    const most = this.#config.SVC_MAX_CONCURRENT_EXECUTIONS;
    const takesSeat = isExecution && most > 0;
    const caller = callerKey(principal);
    const window = `svc:limit:${scope}:${caller}`;
    const seats = `svc:seats:${caller}`;
    const id = newId();
    const [count, leftMs, place] = await storeCall(() =>
      takesSeat
        ? this.#enter(2, window, seats, limit.requests, limit.windowMs, id, most, SEAT_LIFE_MS)
        : this.#enter(1, window, limit.requests, limit.windowMs),
    ).catch((error: unknown) => {
      // A call that was given up may still reach the store.
      if (takesSeat) this.#seats.giveBack(seats, id);
      throw error;
    });
    const entry: Entry = { window: { ...limit, count, leftMs } };
    if (isOver(entry.window)) {
      return { ...entry, refusal: { by: scope, error: windowIsFull(what, entry.window) } };
    }
    if (!takesSeat) return entry;
    if (place > 0) return { ...entry, seat: this.#seats.hold(seats, id, place) };
    return { ...entry, refusal: { by: "concurrent_executions", error: seatsAreTaken(most) } };
  }

  close(): void {
    this.#seats.close();
  }
}

/** Short, whatever the ids are, and never the same for two principals. */
export function callerKey({ tenantId, userId }: Principal): string {
  return createHash("sha256")
    .update(JSON.stringify([tenantId, userId]))
    .digest("base64url");
}
