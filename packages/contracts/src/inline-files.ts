/** Inline files, whose content comes with a request, and their position among the referenced files. Pure. */
import { z } from "zod";

export const INLINE_LIMITS = { fileBytes: 2 ** 20, totalBytes: 4 * 2 ** 20 } as const;

export const INLINE_ENCODINGS = ["utf8", "base64"] as const;

/** An inline file as the job carries it. `at`: its index in the caller's `files`. */
export const inlineJobFileSchema = z.object({
  at: z.number().int().nonnegative(),
  name: z.string(),
  content: z.string(),
  encoding: z.enum(INLINE_ENCODINGS),
});
export type InlineJobFile = z.infer<typeof inlineJobFileSchema>;

/** Referenced and inline files in the order of the request, because errors name files by their index there. */
export function inRequestOrder<T, I extends Pick<InlineJobFile, "at">>(
  referenced: readonly T[],
  inline: readonly I[] = [],
): (T | I)[] {
  const places = new Map(inline.map((file) => [file.at, file]));
  const rest = referenced.values();
  return Array.from(
    { length: referenced.length + inline.length },
    (_, at) => places.get(at) ?? (rest.next().value as T),
  );
}
