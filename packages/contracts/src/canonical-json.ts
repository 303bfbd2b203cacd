/**
 * Canonical JSON: one text for one value. Keys are sorted by their UTF-16 code units at all levels; there are no spaces.
 * Strings and numbers are as JSON.stringify writes them; undefined fields are left out.
 * Works at any depth and length: no recursion and no spread arguments. Linear, except for sorting the keys. Pure.
 */

/** Thrown when a value has no canonical text. */
export class NotCanonical extends Error {
  constructor() {
    super("the value has no canonical JSON text");
    this.name = "NotCanonical";
  }
}

interface Rules {
  /** Objects with more keys than this keep their original order. */
  maxSorted: number;
  /** Deeper nesting throws NotCanonical. */
  maxDepth: number;
  /** Throws NotCanonical for values that JSON cannot represent without loss. */
  isExact: boolean;
}

const SIGNED: Rules = { maxSorted: Number.POSITIVE_INFINITY, maxDepth: 32, isExact: true };

/** The text of a value that gets signed: two different values never have the same text. Throws NotCanonical. */
export function canonicalJson(value: unknown): string {
  return write(value, SIGNED);
}

/** The text of a value from JSON.parse, such as a body or a tool call's arguments. Equal texts mark a repetition. Never throws. */
export function canonicalArguments(value: unknown, maxSorted = Number.POSITIVE_INFINITY): string {
  return write(value, { maxSorted, maxDepth: Number.POSITIVE_INFINITY, isExact: false });
}

/** An array or object whose text is only partly written. */
interface Open {
  members: Record<PropertyKey, unknown>;
  /** The sorted keys of an object; undefined for an array. */
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
