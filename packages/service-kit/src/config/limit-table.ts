/**
 * Tables of limits as values of variables: a JSON object of entries, each an object of limits. An error names the position of
 * the mistake and what is valid there.
 */
import type { z } from "zod";

/** `names`: the allowed names of entries; all names when absent. */
export function parseLimitTable<T>(
  text: string,
  schema: z.ZodObject & z.ZodType<T>,
  names?: readonly string[],
): Readonly<Record<string, Readonly<T>>> {
  const entries = Object.entries(objectOf(text)).map(([name, limits]) => {
    if (names !== undefined && !names.includes(name))
      throw new RangeError(`is wrong: ${unlisted(name, names)}`);
    const result = schema.safeParse(limits);
    if (result.success) return [name, Object.freeze(result.data)] as const;
    const [issue] = result.error.issues;
    const [unknown] = issue?.code === "unrecognized_keys" ? issue.keys : [];
    const problem = unknown === undefined ? issue?.message : unlisted(unknown, Object.keys(schema.shape));
    throw new RangeError(`is wrong at ${[name, ...(issue?.path ?? [])].join(".")}: ${problem}`);
  });
  return Object.freeze(Object.fromEntries(entries));
}

function objectOf(text: string): object {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new RangeError("must be JSON");
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new RangeError("must be a JSON object");
  }
  return given;
}

function unlisted(name: string, known: readonly string[]): string {
  return `${name} is not one of ${known.join(", ")}`;
}
