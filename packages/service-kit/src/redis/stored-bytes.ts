/**
 * How many bytes Redis keeps of each principal for later: jobs, with their events once they have ended, paused programs, results and
 * answers, those by Idempotency-Key too. Scripts that store such things count them (`STORED` goes before these); within the limits of
 * requests one caller could fill the store otherwise.
 */
import { type Redis, storeCall } from "./client.ts";
import { type LuaCommand, luaCommand } from "./lua-command.ts";

const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);

/** The functions that scripts count by. */
export const STORED = script("stored");

/** Keys of the ids and sizes of what is stored of the principal of this namespace. */
export const storedKeys = (namespace: string) =>
  [`svc:stored:${namespace}`, `svc:stored:${namespace}:bytes`] as const;

export class StoredBytes {
  /** That a principal may have stored; 0: no limit. */
  readonly most: number;
  readonly #total: LuaCommand<number>;

  constructor(redis: Redis, most: number) {
    this.most = most;
    this.#total = luaCommand(redis, "svcStoredTotal", [STORED, script("stored-total")], 2);
  }

  /** Whether there is no room for more. Asks the store nothing where there is no limit. */
  async isFull(namespace: string): Promise<boolean> {
    return this.most > 0 && (await storeCall(() => this.#total(...storedKeys(namespace)))) >= this.most;
  }
}
