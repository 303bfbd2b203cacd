/**
 * The exchanges of programmatic executions in Redis: which tools are declared, which calls were made, which results came.
 * Each operation is one script and one round trip, so any server serves any request. Trusts its callers' internal token;
 * a callback token proves that a call comes from its execution. Only a hash of it is kept.
 */
import { createHash } from "node:crypto";
import {
  newCallbackToken,
  type OpenToolExchange,
  roundLifeMs,
  ServiceError,
  type ToolResults,
} from "@svc/contracts";
import { type Config, type LuaCommand, luaCommand, type Redis, storeCall } from "@svc/service-kit";
import { digestOf, jsonText } from "./json.ts";

const script = (name: string) => new URL(`./lua/${name}.lua`, import.meta.url);
const COMMANDS = ["open", "record", "look", "pending", "answer", "close"] as const;
type Command = (typeof COMMANDS)[number];

export const INDEX_KEY = "svc:tool:sessions";
/** Number of keys of each command. */
const KEYS = 4;

/** The state of a call: its result as the text of the answer, or how long it may still wait. */
export type CallState = { state: "answered"; text: string } | { state: "waiting"; leftMs: number };
/** There is no exchange (yet). */
export type Unopened = { state: "unopened" };

export interface Call {
  execution: string;
  id: string;
}

/** A call as it was made. */
export interface MadeCall {
  id: string;
  tool: string;
  input: unknown;
}
/** `name` as JSON; `text` and `digest` are what is kept of the call. */
type CallText = Record<"id" | "name" | "text" | "digest", string>;

export interface Listing {
  /** The first undeclared tool that was called. */
  undeclared?: string;
  /** Each as the JSON text of a PendingCall: arguments are not parsed again. */
  calls: string[];
}

/** More calls may come. */
export interface Incomplete {
  /** The revision of the exchange that this is true for. */
  revision: string | null;
}

type Reply = [string, ...(string | number | null)[]];

export class Exchanges {
  readonly #redis: Redis;
  readonly #config: Config;
  readonly #commands: ReadonlyMap<Command, LuaCommand<unknown>>;
  readonly #count: LuaCommand<number>;

  constructor(redis: Redis, config: Config) {
    const shared = script("exchange");
    const named = (name: Command) => `svcTool${name[0]?.toUpperCase()}${name.slice(1)}`;
    this.#commands = new Map(
      COMMANDS.map((name) => [name, luaCommand(redis, named(name), [shared, script(name)], KEYS)]),
    );
    this.#count = luaCommand(redis, "svcToolCount", script("count"), 1);
    this.#redis = redis;
    this.#config = config;
  }

  /** Opens a new exchange for an execution, in place of an older one, and returns its callback token. */
  async open({
    execution_id,
    session_id,
    timeout,
    tools,
    callback_token: token = newCallbackToken(),
  }: OpenToolExchange): Promise<string> {
    const longest = this.#config.TOOL_CALL_REQUEST_TIMEOUT;
    const waitMs = Math.min(timeout ?? longest, longest);
    const names = tools.map((name) => JSON.stringify(name));
    await this.#run("open", execution_id, session_id, hash(token), waitMs, ...names);
    return token;
  }

  /**
   * Records calls with different ids, or finds the same calls again: all of them, or none when one is refused. Returns the state of the first
   * call; `fresh` is the number of new calls.
   */
  async record(
    execution: string,
    token: string,
    calls: readonly MadeCall[],
  ): Promise<(CallState | Unopened) & { fresh: number }> {
    const { PTC_MAX_CALLS, PTC_MAX_HISTORY_BYTES } = this.#config;
    const limits = [PTC_MAX_CALLS, PTC_MAX_HISTORY_BYTES];
    const flat = calls.map(callText).flatMap(({ id, name, text, digest }) => [id, name, text, digest]);
    const reply = await this.#run("record", execution, hash(token), ...limits, ...flat);
    const [kind] = reply;
    switch (kind) {
      case "unopened":
        return { state: kind, fresh: 0 };
      case "refused":
        throw new ServiceError("callback_refused");
      case "undeclared":
        throw new ServiceError("tool_not_declared");
      case "full":
        throw new ServiceError("invalid_request", `An execution may make ${PTC_MAX_CALLS} tool calls.`);
      case "large":
        throw new ServiceError(
          "tool_call_too_large",
          "The tool calls of the execution are too large together.",
        );
      case "other":
        throw new ServiceError("invalid_request", "The tool call id belongs to another tool call.");
      default:
        return { ...(callState(reply) ?? gone()), fresh: Number(reply[2]) };
    }
  }

  /** The state of a recorded call; undefined when the call no longer exists. */
  async look({ execution, id }: Call): Promise<CallState | undefined> {
    return callState(await this.#run("look", execution, id));
  }

  /** The calls without a result; `Incomplete` only when `complete` is wanted. */
  async pending(execution: string, ids: readonly string[], complete: boolean): Promise<Listing | Incomplete> {
    const [kind, first, ...calls] = await this.#run("pending", execution, complete ? 0 : 1, ...ids);
    if (kind === "gone") gone();
    if (kind === "incomplete") return { revision: first as string | null };
    return {
      ...(first === "" ? {} : { undeclared: JSON.parse(String(first)) as string }),
      calls: pendingTexts(calls as string[]),
    };
  }

  /** Records results and returns how many of them are now the result of their call. `all`: their texts, if all of them are. */
  async answer(
    execution: string,
    { results }: ToolResults,
  ): Promise<{ processed: number; all?: ReadonlyMap<string, string> }> {
    const texts = results.map((result, index) => [result.call_id, answerText(result, index)] as const);
    const processed = await this.#run<number>("answer", execution, ...texts.flat());
    if (processed === -1) gone();
    return { processed, ...(processed === texts.length && { all: new Map(texts) }) };
  }

  async close(execution: string): Promise<void> {
    await this.#run("close", execution);
  }

  /** How many exchanges there are, over all servers. */
  count(): Promise<number> {
    return storeCall(() => this.#count(INDEX_KEY));
  }

  /** The current revisions of exchanges; null for one that has ended. */
  async revisions(executions: readonly string[]): Promise<(string | null)[]> {
    const pipeline = this.#redis.pipeline();
    for (const execution of executions) pipeline.hget(keysOf(execution)[0] as string, "rev");
    const replies = await storeCall(() => pipeline.exec());
    return (replies ?? []).map(([error, revision]) => {
      if (error !== null) throw new ServiceError("store_unavailable", undefined, { cause: error });
      return revision as string | null;
    });
  }

  #run<Answer = Reply>(command: Command, execution: string, ...args: (string | number)[]): Promise<Answer> {
    // A listing marks a pause. After any other command the round continues, perhaps without a call until its end, and the exchange must outlive
    // it.
    const life =
      command === "pending" ? this.#config.TOOL_CALL_SESSION_EXPIRY * 1000 : roundLifeMs(this.#config);
    const run = this.#commands.get(command) as LuaCommand<Answer>;
    return storeCall(() => run(...keysOf(execution), execution, life, ...args));
  }
}

const hash = (token: string) => createHash("sha256").update(token).digest("base64url");
const keysOf = (execution: string) => [
  ...["session", "calls", "results"].map((part) => `svc:tool:${execution}:${part}`),
  INDEX_KEY,
];

function gone(): never {
  throw new ServiceError("execution_not_found");
}

function callText({ id, tool, input }: MadeCall): CallText {
  const name = JSON.stringify(tool);
  const text = `"tool_name":${name},"tool_input":${jsonText(input, "input")}`;
  return { id, name, text, digest: digestOf([tool, input]) };
}

function callState([kind, value]: Reply): CallState | undefined {
  if (kind === "gone") return undefined;
  return kind === "answered"
    ? { state: "answered", text: String(value) }
    : { state: "waiting", leftMs: Number(value) };
}

/** Ids count upwards, so a longer one is a later one. */
const byId = ([left]: [string, string], [right]: [string, string]) =>
  left.length - right.length || (left < right ? -1 : 1);

function pendingTexts(flat: readonly string[]): string[] {
  const calls: [string, string][] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) calls.push([flat[at] as string, flat[at + 1] as string]);
  return calls.sort(byId).map(([id, stored]) => {
    const space = stored.indexOf(" ");
    return `{"call_id":"${id}",${stored.slice(space + 1)},"timestamp":${stored.slice(0, space)}}`;
  });
}

/** The answer to a call, as it goes to the program's side. */
function answerText(result: ToolResults["results"][number], index: number): string {
  const { is_error, error_message } = result;
  const text = jsonText(result.result ?? null, `results[${index}].result`);
  const message = error_message === undefined ? "" : `,"error_message":${JSON.stringify(error_message)}`;
  return `{"success":true,"result":${text},"is_error":${is_error}${message}}`;
}
