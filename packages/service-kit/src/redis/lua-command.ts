/** A script of ours as a command of a Redis client: sent as its hash, and as its text when the server does not know it. */
import { readFileSync } from "node:fs";
import type { Redis } from "./client.ts";

export type LuaCommand<Reply> = (...args: (string | number)[]) => Promise<Reply>;

/**
 * Makes `redis[name]` the script in `file`, or in several one after the other, and answers that command. Without `keys` its first
 * argument is the number of keys; they come next. Trusts that the script answers what `Reply` says.
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
