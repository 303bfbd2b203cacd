/**
 * Kinds of configuration values. Each kind parses one text, or throws a RangeError that says what is valid.
 * Sizes: bytes, or a number with k, kb, m, mb, g, gb (powers of 1024).
 */
import { portOfTarget } from "./forward-target.ts";
import { sentinelAddress } from "./redis-address.ts";

export type Component =
  | "api"
  | "worker"
  | "runner"
  | "launcher"
  | "file-server"
  | "tool-call-server"
  | "egress-gateway";

export interface Variable<T> {
  parse: (text: string) => T;
  fallback: T;
  /** The default in words, when it is not the literal `fallback`. */
  note?: string;
  secret: boolean;
  doc: string;
}

interface Range {
  min?: number;
  max?: number;
}

function within(value: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Range): number {
  if (value >= min && value <= max) return value;
  const isOpen = max === Number.MAX_SAFE_INTEGER;
  throw new RangeError(isOpen ? `must be at least ${min}` : `must be between ${min} and ${max}`);
}

function variable<T>(parse: (text: string) => T, fallback: T, doc: string): Variable<T> {
  return { parse, fallback, doc, secret: false };
}

export function int(fallback: number, doc: string, range: Range = {}, unit = ""): Variable<number> {
  const kind = unit === "" ? "a whole number" : `a whole number of ${unit}`;
  return variable(
    (text) => {
      if (!/^-?\d{1,15}$/.test(text)) throw new RangeError(`must be ${kind}`);
      return within(Number(text), range);
    },
    fallback,
    doc,
  );
}

/** A number from 0 to 1. */
export function ratio(fallback: number, doc: string): Variable<number> {
  return variable(
    (text) => {
      if (!/^\d(\.\d{1,15})?$/.test(text)) throw new RangeError("must be a number from 0 to 1, such as 0.1");
      return within(Number(text), { max: 1 });
    },
    fallback,
    doc,
  );
}

export const port = (fallback: number, doc: string) => int(fallback, doc, { min: 0, max: 65535 });
export const LONGEST_TIME_MS = 86_400_000;
export const ms = (fallback: number, doc: string, max = LONGEST_TIME_MS) =>
  int(fallback, `${doc} In milliseconds.`, { min: 1, max }, "milliseconds");
/** Node's longest timer, 2^31 - 1 ms: one that is longer ends at once. */
export const LONGEST_TIMER_SECONDS = 2_147_483;
export const seconds = (fallback: number, doc: string, max = 31_536_000) =>
  int(fallback, `${doc} In seconds.`, { min: 1, max }, "seconds");
export const count = (fallback: number, doc: string, max = 1_000_000) => int(fallback, doc, { min: 1, max });

const UNITS: Record<string, number> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

export function parseSize(text: string, range: Range = {}): number {
  const match = /^(\d{1,15})(k|m|g)?b?$/i.exec(text);
  if (match === null) throw new RangeError("must be a size such as 1048576, 512k, 25mb or 2g");
  const unit = UNITS[(match[2] ?? "").toLowerCase()] ?? 1;
  return within(Number(match[1]) * unit, range);
}

export function size(fallback: number, doc: string, range: Range = {}): Variable<number> {
  return variable((text) => parseSize(text, range), fallback, `${doc} In bytes.`);
}

export function bool(fallback: boolean, doc: string): Variable<boolean> {
  return variable(
    (text) => {
      const value = text.toLowerCase();
      if (["true", "on", "1"].includes(value)) return true;
      if (["false", "off", "0"].includes(value)) return false;
      throw new RangeError("must be true or false");
    },
    fallback,
    doc,
  );
}

/** A switch that weakens a protection: only exactly `true` turns it on, and a misspelt value stops the process. */
export function exactBool(fallback: boolean, doc: string): Variable<boolean> {
  return variable(
    (value) => {
      if (value !== "true" && value !== "false") throw new RangeError("must be exactly true or false");
      return value === "true";
    },
    fallback,
    doc,
  );
}

export function text(fallback: string, doc: string): Variable<string> {
  return variable((value) => value, fallback, doc);
}

export function secret(doc: string): Variable<string> {
  return { ...text("", doc), secret: true };
}

export function oneOf<const T extends string>(values: readonly T[], fallback: T, doc: string): Variable<T> {
  return variable(
    (value) => {
      const found = values.find((candidate) => candidate.toLowerCase() === value.toLowerCase());
      if (found === undefined)
        throw new RangeError(`must be one of ${values.filter((v) => v !== "").join(", ")}`);
      return found;
    },
    fallback,
    doc,
  );
}

/** A comma list. With `allowed`, it may contain only these items. */
export function list(
  fallback: readonly string[],
  doc: string,
  allowed?: readonly string[],
): Variable<readonly string[]> {
  return variable(
    (value) => {
      const items = value.split(",").map((item) => item.trim());
      if (items.includes("")) throw new RangeError("must be a comma list without empty items");
      if (allowed !== undefined && !items.every((item) => allowed.includes(item))) {
        throw new RangeError(`must be a comma list of ${allowed.join(", ")}`);
      }
      return items;
    },
    fallback,
    doc,
  );
}

/** A comma list of host names and addresses, converted to lower case. */
export function hosts(doc: string): Variable<readonly string[]> {
  const items = list([], doc);
  return {
    ...items,
    parse: (text) => {
      const names = items.parse(text).map((name) => name.toLowerCase());
      if (names.some((name) => name.includes("*") || URL.parse(`http://${name}`)?.hostname !== name)) {
        throw new RangeError("must be a comma list of names or addresses without scheme and port");
      }
      return names;
    },
  };
}

/** `host:port`. */
export function target(fallback: string, doc: string): Variable<string> {
  return variable(
    (value) => {
      if (value !== "" && portOfTarget(value) === undefined)
        throw new RangeError("must be host:port, such as gateway:3190");
      return value;
    },
    fallback,
    doc,
  );
}

/** `query`: allows a query, for a URL that is used unchanged. */
export function url(fallback: string, doc: string, { query = false } = {}): Variable<string> {
  return variable((value) => parseUrl(value, query), fallback, doc);
}

/** A comma list of addresses. */
export function urls(doc: string, fallback: readonly string[] = []): Variable<readonly string[]> {
  return variable(
    (value) =>
      list([], doc)
        .parse(value)
        .map((one) => parseUrl(one)),
    fallback,
    doc,
  );
}

function parseUrl(value: string, mayHaveQuery = false): string {
  const parsed = URL.parse(value);
  if (!/^https?:$/.test(parsed?.protocol ?? "")) {
    throw new RangeError("must be a URL such as http://localhost:3000");
  }
  // The log shows URLs, and hardly any component would use the credentials.
  if (parsed?.username || parsed?.password) throw new RangeError("must have no user and no password");
  if (value.includes("#") || (value.includes("?") && !mayHaveQuery))
    throw new RangeError("must end with its path: no ? and no #");
  return value.replace(/\/+$/, "");
}

/** An address of Redis. Secret: it may hold a password. */
export function redisUrl(doc: string): Variable<string> {
  const parse = (value: string) => {
    const parsed = URL.parse(value);
    const hasMore = (parsed?.search ?? "") + (parsed?.hash ?? "") !== "";
    const fits =
      parsed?.protocol === "unix:"
        ? parsed.pathname.length > 1
        : /^rediss?:$/.test(parsed?.protocol ?? "") && /^(\/\d{0,4})?$/.test(parsed?.pathname ?? "");
    if ((!fits || hasMore) && sentinelAddress(value) === undefined)
      throw new RangeError(
        "must be an address such as redis://localhost:6379/0, redis+sentinel://one:26379,two:26379/mymaster or unix:/run/redis.sock",
      );
    return value;
  };
  return { ...variable(parse, "", doc), secret: true };
}

/** Gives a variable a default that depends on other variables; `note` says which. */
export function withNote<T>(base: Variable<T>, note: string): Variable<T> {
  return { ...base, note };
}
