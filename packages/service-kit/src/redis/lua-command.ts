/** Defines a Lua script as a command of a Redis client. It is sent by its hash, and by its text when the server does not know it. */
import { readFileSync } from "node:fs";
import type { Redis } from "./client.ts";

export type LuaCommand<Reply> = (...args: (string | number)[]) => Promise<Reply>;

/**
 * Defines `redis[name]` as the script in `file`, or in several files concatenated, and returns that command. Without `keys` the first
 * argument is the number of keys, and the keys follow. Trusts that the script returns what `Reply` says.
 */
export function luaCommand<Reply>(
  redis: Redis,
  name: string,
  file: URL | readonly URL[],
  keys?: number,
): LuaCommand<Reply> {
  const lua = [file]
    .flat()
    .map((part) => readFileSync(part, "utf8"))
    .join("");
  redis.defineCommand(name, { lua, ...(keys === undefined ? {} : { numberOfKeys: keys }) });
  const command = Reflect.get(redis, name) as LuaCommand<Reply>;
  return command.bind(redis);
}
