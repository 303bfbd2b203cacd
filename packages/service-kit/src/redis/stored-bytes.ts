/**
 * Counts the bytes that Redis keeps for each principal: jobs (with their events once they have ended), paused programs, results and
 * answers, including those kept by Idempotency-Key. Scripts that store such data count it; `STORED` is prepended to them.
 * Without this limit one caller could fill Redis within the rate limits.
 */
import { type Redis, storeCall } from "./client.ts";
import { type LuaCommand, luaCommand } from "./lua-command.ts";

const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);

/** The file with the counting functions. */
export const STORED = script("stored");

/** Keys of the ids and sizes of the data stored for the principal of this namespace. */
export const storedKeys = (namespace: string) =>
  [`svc:stored:${namespace}`, `svc:stored:${namespace}:bytes`] as const;

export class StoredBytes {
  /** Most bytes stored for a principal; 0: no limit. */
  readonly most: number;
  readonly #total: LuaCommand<number>;

  constructor(redis: Redis, most: number) {
    this.most = most;
    this.#total = luaCommand(redis, "svcStoredTotal", [STORED, script("stored-total")], 2);
  }

  /** Whether the principal has reached the limit. Without a limit it does not ask Redis. */
  async isFull(namespace: string): Promise<boolean> {
    return this.most > 0 && (await storeCall(() => this.#total(...storedKeys(namespace)))) >= this.most;
  }
}
