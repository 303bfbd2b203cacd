/** Checks the shape and size of an execution's inline files. Their names follow the rules for all files (refs.ts). Pure. */
import {
  byteSize,
  fileNameProblem,
  INLINE_LIMITS,
  type InlineJobFile,
  inlineFileSchema,
  type NameLimits,
  type Problem,
  problemsOf,
  ServiceError,
} from "@svc/contracts";

/** A file with `content` is an inline file. */
export function isInline(item: unknown): item is { content: unknown } {
  const content = (item as { content?: unknown } | null)?.content;
  return typeof item === "object" && content !== undefined && content !== null;
}

export function parseInline(
  item: { content: unknown },
  at: number,
  names: NameLimits,
  problems: Problem[],
): InlineJobFile | undefined {
  const result = inlineFileSchema.safeParse(item);
  if (!result.success) {
    problems.push(...problemsOf(result.error, ["files", at]));
    return undefined;
  }
  const { name, content, encoding } = result.data;
  const file = { at, name, content, encoding: encoding ?? ("utf8" as const) };
  const nameProblem = fileNameProblem(name, names);
  const contentProblem = problemOfContent(file);
  if ("id" in item && item.id != null)
    problems.push({ path: `files[${at}]`, problem: "must not have both content and id" });
  else if (nameProblem !== undefined) problems.push({ path: `files[${at}].name`, problem: nameProblem });
  else if (contentProblem !== undefined)
    problems.push({ path: `files[${at}].content`, problem: contentProblem });
  else return file;
  return undefined;
}

/** Only canonical base64 is accepted: whole bytes, padding, no other characters. So each content has exactly one encoding. */
function problemOfContent({ content, encoding }: InlineJobFile): string | undefined {
  if (encoding === "utf8")
    return content.isWellFormed() ? undefined : "must be valid Unicode; send other bytes as base64";
  const isStrict = content.length % 4 === 0 && Buffer.from(content, "base64").toString("base64") === content;
  return isStrict ? undefined : "must be base64 with padding, of A-Z a-z 0-9 + / alone";
}

/** Enforces the size limits of each inline file and of all of them together. */
export function checkInlineSizes(files: readonly InlineJobFile[]): void {
  let total = 0;
  for (const { at, content, encoding } of files) {
    const bytes = Buffer.byteLength(content, encoding);
    if (bytes > INLINE_LIMITS.fileBytes) {
      throw tooLarge(
        `files[${at}].content`,
        `has ${byteSize(bytes)}; at most ${byteSize(INLINE_LIMITS.fileBytes)}`,
      );
    }
    total += bytes;
  }
  if (total > INLINE_LIMITS.totalBytes) {
    throw tooLarge(
      "files",
      `have ${byteSize(total)} of content; at most ${byteSize(INLINE_LIMITS.totalBytes)}`,
    );
  }
}

function tooLarge(path: string, what: string): ServiceError {
  const problem = `${what} are allowed in a request: upload it with POST /v1/upload`;
  return new ServiceError("request_too_large", `${path}: ${problem}.`, {
    status: 422,
    details: [{ path, problem }],
  });
}
