/**
 * One text for one JSON value: keys sorted by their UTF-16 code units at all levels, no spaces, strings and numbers as
 * JSON.stringify writes them, undefined fields left out. However deep and however long the value is: no recursion, nothing
 * spread, linear but for the sorting of keys. Pure.
 */

/** The value has no canonical text. */
export class NotCanonical extends Error {
  constructor() {
    super("the value has no canonical JSON text");
    this.name = "NotCanonical";
  }
}

interface Rules {
  /** Objects of more keys keep the order that they came in. */
  maxSorted: number;
  /** Deeper nesting is refused. */
  maxDepth: number;
  /** What JSON cannot say without loss is refused. */
  isExact: boolean;
}

const SIGNED: Rules = { maxSorted: Number.POSITIVE_INFINITY, maxDepth: 32, isExact: true };

/** For what is signed: two different values never share a text. Throws NotCanonical. */
export function canonicalJson(value: unknown): string {
  return write(value, SIGNED);
}

/** For what JSON.parse gave: the arguments of a tool call, a body. By their text repetitions are recognised. Never throws. */
export function canonicalArguments(value: unknown, maxSorted = Number.POSITIVE_INFINITY): string {
  return write(value, { maxSorted, maxDepth: Number.POSITIVE_INFINITY, isExact: false });
}

/** A container that is being written. */
interface Open {
  members: Record<PropertyKey, unknown>;
  /** Of an object, sorted. */
  keys: readonly string[] | undefined;
  length: number;
  next: number;
}

function write(value: unknown, { maxSorted, maxDepth, isExact }: Rules): string {
  const texts: string[] = [];
  const open: Open[] = [];
  const begin = (item: unknown): void => {
    if (typeof item !== "object" || item === null) {
      if (isExact && !isExactScalar(item)) throw new NotCanonical();
      texts.push(JSON.stringify(item));
      return;
    }
    if (open.length >= maxDepth) throw new NotCanonical();
    const container = opened(item, maxSorted);
    texts.push(container.keys === undefined ? "[" : "{");
    open.push(container);
  };
  begin(value);
  for (let container = open.at(-1); container !== undefined; container = open.at(-1)) {
    const { members, keys, length } = container;
    if (container.next === length) {
      texts.push(keys === undefined ? "]" : "}");
      open.pop();
      continue;
    }
    if (container.next > 0) texts.push(",");
    const key = keys?.[container.next] ?? container.next;
    if (typeof key === "string") texts.push(JSON.stringify(key), ":");
    container.next++;
    begin(members[key]);
  }
  return texts.join("");
}

function isExactScalar(value: unknown): boolean {
  return value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
}

function opened(value: object, maxSorted: number): Open {
  const members = value as Record<PropertyKey, unknown>;
  if (Array.isArray(value)) return { members, keys: undefined, length: value.length, next: 0 };
  const keys = Object.keys(value).filter((key) => members[key] !== undefined);
  if (keys.length <= maxSorted) keys.sort();
  return { members, keys, length: keys.length, next: 0 };
}
