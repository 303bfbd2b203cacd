/**
 * Lists the top-level request fields that have no effect in a response header. The names come from the caller: other characters than
 * visible ASCII are replaced, and their number and length are bounded. Pure, except that it sets the header.
 */
import type { FastifyReply } from "@svc/service-kit";

export const IGNORED_FIELDS_HEADER = "x-svc-ignored-fields";

const MAX_NAMES = 20;
const MAX_NAME_CHARS = 64;

/** The names of unknown fields, safe for a header value; undefined when there is none. */
export function ignoredFields(body: unknown, known: ReadonlySet<string>): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const names: string[] = [];
  for (const name of Object.keys(body)) {
    if (known.has(name)) continue;
    names.push(shown(name));
    if (names.length === MAX_NAMES) break;
  }
  return names.length === 0 ? undefined : names.join(", ");
}

/** Visible ASCII without the comma, which separates names; an empty name is shown as "?". */
function shown(name: string): string {
  return name.slice(0, MAX_NAME_CHARS).replace(/[^\x21-\x2b\x2d-\x7e]/g, "?") || "?";
}

export function tellIgnoredFields(reply: FastifyReply, body: unknown, known: ReadonlySet<string>): void {
  const names = ignoredFields(body, known);
  if (names !== undefined) reply.header(IGNORED_FIELDS_HEADER, names);
}
