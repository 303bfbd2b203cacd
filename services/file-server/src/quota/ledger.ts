/**
 * The ledger of what each account has stored, in Redis, shared by all file servers. An account has a sorted set of addresses, and a hash of their
 * sizes and the total. The score of a reservation is its negated expiry time. The score of a stored object is the time when it was last known to
 * exist. Times are Redis's. The keys expire when nobody counts any more.
 */
import type { ObjectAddress } from "@svc/object-store";
import { type LuaCommand, luaCommand, type Redis } from "@svc/service-kit";

/** Life of a reservation: longer than a write takes from its last byte until the object is visible. */
const RESERVATION_MS = 15 * 60_000;
/** Life of the keys. A running file server renews them at least every hour, whether it can count or not. */
const KEYS_MS = 2 * 86_400_000;
const PRUNED_AT_ONCE = 1000;
const ACCOUNTS = "svc:quota:accounts";

export interface Sized {
  address: ObjectAddress;
  size: number;
}

/** Most bytes and objects of an account; 0: no limit. */
export interface Allowance {
  bytes: number;
  objects: number;
}

export interface Asked {
  /** The limit that the request would exceed; undefined: the reservation was made. */
  refused: "bytes" | "objects" | undefined;
  used: Allowance;
  asked: Allowance;
}

type Reply = [refused: string, bytes: number, objects: number, moreBytes: number, moreObjects: number];

const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);
const entriesKey = (account: string) => `svc:quota:entries:${account}`;
const sizesKey = (account: string) => `svc:quota:sizes:${account}`;
const textOf = ({ session, file }: ObjectAddress) => `${session}/${file}`;
const pairs = (objects: readonly Sized[]) => objects.flatMap(({ address, size }) => [textOf(address), size]);

export class Ledger {
  readonly #redis: Redis;
  readonly #reserve: LuaCommand<Reply>;
  readonly #settle: LuaCommand<unknown>;
  readonly #release: LuaCommand<unknown>;
  readonly #releaseSession: LuaCommand<unknown>;
  readonly #prune: LuaCommand<[pruned: number, bytes: number, objects: number]>;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#reserve = luaCommand(redis, "svcQuotaReserve", script("reserve"), 3);
    this.#settle = luaCommand(redis, "svcQuotaSettle", script("settle"), 3);
    this.#release = luaCommand(redis, "svcQuotaRelease", script("release"), 2);
    this.#releaseSession = luaCommand(redis, "svcQuotaReleaseSession", script("release-session"), 2);
    this.#prune = luaCommand(redis, "svcQuotaPrune", script("prune"), 3);
  }

  async reserve(
    account: string,
    objects: readonly Sized[],
    most: Allowance,
    forMs: number = RESERVATION_MS,
  ): Promise<Asked> {
    const [refused, bytes, count, moreBytes, moreObjects] = await this.#reserve(
      ...[entriesKey(account), sizesKey(account), ACCOUNTS],
      ...[account, most.bytes, most.objects, forMs, KEYS_MS, ...pairs(objects)],
    );
    return {
      refused: refused === "bytes" || refused === "objects" ? refused : undefined,
      used: { bytes, objects: count },
      asked: { bytes: moreBytes, objects: moreObjects },
    };
  }

  /** What the account holds, without expired reservations. */
  async held(account: string): Promise<Allowance> {
    return this.prune(account, 0);
  }

  async settle(account: string, objects: readonly Sized[]): Promise<void> {
    const keys = [entriesKey(account), sizesKey(account), ACCOUNTS];
    await this.#settle(...keys, account, KEYS_MS, ...pairs(objects));
  }

  async release(account: string, addresses: readonly ObjectAddress[]): Promise<void> {
    await this.#release(entriesKey(account), sizesKey(account), ...addresses.map(textOf));
  }

  /** Releases the reservations of a session that will not be committed. */
  async releaseSession(account: string, session: string): Promise<void> {
    await this.#releaseSession(entriesKey(account), sizesKey(account), session);
  }

  /** Redis's time in ms. */
  async now(): Promise<number> {
    const [seconds = 0, microseconds = 0] = (await this.#redis.time()).map(Number);
    return seconds * 1000 + Math.floor(microseconds / 1000);
  }

  /** Renews the life of all keys, as a count does. */
  async keep(): Promise<void> {
    await this.#redis.pexpire(ACCOUNTS, KEYS_MS);
    for await (const account of this.accounts()) {
      for (const key of [entriesKey(account), sizesKey(account)]) await this.#redis.pexpire(key, KEYS_MS);
    }
  }

  async *accounts(): AsyncGenerator<string> {
    for await (const found of this.#redis.sscanStream(ACCOUNTS)) yield* new Set(found as string[]);
  }

  /** Releases what was not settled since `beforeMs`, and expired reservations. Returns what the account still holds. */
  async prune(account: string, beforeMs: number): Promise<Allowance> {
    const keys = [entriesKey(account), sizesKey(account), ACCOUNTS];
    for (;;) {
      const [pruned, bytes, objects] = await this.#prune(...keys, account, beforeMs, PRUNED_AT_ONCE);
      if (pruned < PRUNED_AT_ONCE) return { bytes, objects };
    }
  }
}
