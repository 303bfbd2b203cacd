/**
 * The one text of a tool call's arguments, by which a repeated call is recognised: keys sorted by their UTF-16 code units
 * at all levels, no spaces, strings and numbers as JSON.stringify writes them. Takes what JSON.parse gives, however deep and
 * however long: no recursion, nothing spread, linear but for the sorting of keys. Pure.
 *
 * Objects of more than `maxSorted` keys keep the order that they came in.
 */

/** A container that is being written. */
interface Open {
  members: Record<PropertyKey, unknown>;
  /** Of an object, sorted. */
  keys: readonly string[] | undefined;
  length: number;
  next: number;
}

export function canonicalArguments(value: unknown, maxSorted = Number.POSITIVE_INFINITY): string {
  const texts: string[] = [];
  const open: Open[] = [];
  const write = (item: unknown): void => {
    if (typeof item !== "object" || item === null) {
      texts.push(JSON.stringify(item));
      return;
    }
    const container = opened(item, maxSorted);
    texts.push(container.keys === undefined ? "[" : "{");
    open.push(container);
  };
  write(value);
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
    write(members[key]);
  }
  return texts.join("");
}

function opened(value: object, maxSorted: number): Open {
  const members = value as Record<PropertyKey, unknown>;
  if (Array.isArray(value)) return { members, keys: undefined, length: value.length, next: 0 };
  const keys = Object.keys(value);
  if (keys.length <= maxSorted) keys.sort();
  return { members, keys, length: keys.length, next: 0 };
}
