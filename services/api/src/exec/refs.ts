/**
 * The files of an execution: the rules for all files and for references (pure), and the check that the caller's namespaces own the
 * referenced files. Foreign, unknown and expired files look alike: 403 with the index.
 */
import {
  type FileOwner,
  type FileRef,
  fileNameProblem,
  fileRefSchema,
  findPathConflict,
  type InlineJobFile,
  inRequestOrder,
  isReservedName,
  type JobFile,
  type NameLimits,
  namespaceOf,
  type ObjectRecord,
  type Principal,
  type Problem,
  problemsOf,
  RESOURCE_ID_PATTERN,
  ServiceError,
} from "@svc/contracts";
import { checkInlineSizes, isInline, parseInline } from "./inline-files.ts";

export interface RefRules {
  maxFiles: number;
  names: NameLimits;
  /** Whether to refuse the names that the service reserves for sessions. */
  keepsSessions: boolean;
}

export interface ParsedFiles {
  files: JobFile[];
  /** Absent when there are no inline files. */
  inline?: InlineJobFile[];
}

/** Checks the `files` of a request. The error lists every problem; a conflict names both indices. */
export function parseFiles(files: readonly unknown[] | null | undefined, rules: RefRules): ParsedFiles {
  const items = files ?? [];
  if (items.length > rules.maxFiles) {
    throw new ServiceError("too_many_files", `files: at most ${rules.maxFiles} are allowed.`);
  }
  const problems: Problem[] = [];
  const refs: (JobFile | undefined)[] = [];
  const contents: (InlineJobFile | undefined)[] = [];
  for (const [index, item] of items.entries()) {
    if (isInline(item)) contents.push(parseInline(item, index, rules.names, problems));
    else refs.push(parseRef(item, index, rules.names, problems));
  }
  if (problems.length > 0) throw refused(problems);
  if (rules.keepsSessions) refuseReserved(items);
  const parsed = refs as JobFile[];
  const inline = contents as InlineJobFile[];
  const conflict = findPathConflict(inRequestOrder(parsed, inline).map(({ name }) => name));
  if (conflict !== undefined) {
    throw refused(
      [conflict.first, conflict.second].map((at) => ({
        path: `files[${at}].name`,
        problem: conflict.problem,
      })),
    );
  }
  checkInlineSizes(inline);
  return { files: parsed, ...(inline.length > 0 ? { inline } : {}) };
}

function refuseReserved(items: readonly unknown[]): void {
  const details = items.flatMap((item, at) =>
    isReservedName((item as { name: string }).name)
      ? [{ path: `files[${at}].name`, problem: "is a name that the service keeps for sessions" }]
      : [],
  );
  const [first] = details;
  if (first === undefined) return;
  throw new ServiceError("reserved_file_name", `${first.path}: ${first.problem}.`, { details });
}

function refused(details: Problem[]): ServiceError {
  const first = details[0] as Problem;
  return new ServiceError("invalid_file_reference", `${first.path}: ${first.problem}.`, { details });
}

function parseRef(item: unknown, index: number, names: NameLimits, problems: Problem[]): JobFile | undefined {
  if (isNeither(item)) {
    const problem = "needs content, or id and storage_session_id of a stored file (POST /v1/upload)";
    problems.push({ path: `files[${index}]`, problem });
    return undefined;
  }
  const result = fileRefSchema.safeParse(item);
  if (!result.success) {
    problems.push(...problemsOf(result.error, ["files", index]));
    return undefined;
  }
  const ref = result.data;
  const own = refProblems(ref, names).map(({ path, problem }) => ({
    path: `files[${index}].${path}`,
    problem,
  }));
  problems.push(...own);
  return own.length > 0 ? undefined : jobFile(ref);
}

/** Whether the item is an object without an id and a storage session. The caller has excluded inline files. */
function isNeither(item: unknown): boolean {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return false;
  const { id, storage_session_id } = item as { id?: unknown; storage_session_id?: unknown };
  return id == null && storage_session_id == null;
}

function refProblems(ref: FileRef, names: NameLimits): Problem[] {
  const problems: Problem[] = [];
  const name = fileNameProblem(ref.name, names);
  if (name !== undefined) problems.push({ path: "name", problem: name });
  const kind = ref.kind ?? "user";
  if (kind !== "user" && !RESOURCE_ID_PATTERN.test(ref.resource_id ?? "")) {
    problems.push({
      path: "resource_id",
      problem: "is required for agent and skill: 1 to 128 of A-Z a-z 0-9 _ . : -",
    });
  }
  if (kind === "skill" && ref.version == null)
    problems.push({ path: "version", problem: "is required for skill" });
  if (kind !== "skill" && ref.version != null)
    problems.push({ path: "version", problem: `is not allowed for ${kind}` });
  return problems;
}

function jobFile(ref: FileRef): JobFile {
  const { id, storage_session_id, name } = ref;
  return {
    id,
    storage_session_id,
    name,
    kind: ref.kind ?? "user",
    ...(ref.resource_id == null ? {} : { resource_id: ref.resource_id }),
    ...(ref.version == null ? {} : { version: ref.version }),
    ...(ref.entity_id == null ? {} : { entity_id: ref.entity_id }),
  };
}

function ownerOf(file: JobFile): FileOwner {
  switch (file.kind) {
    case "user":
      return { kind: "user" };
    case "agent":
      return { kind: "agent", resourceId: file.resource_id ?? "" };
    case "skill":
      return { kind: "skill", resourceId: file.resource_id ?? "", version: file.version ?? 0 };
  }
}

/**
 * Refuses the request at the first file that the caller's namespaces do not own. Adds to each file the size and content type that
 * storage recorded.
 */
export function authoriseRefs(
  { files, inline }: ParsedFiles,
  records: readonly (ObjectRecord | undefined)[],
  principal: Principal,
): JobFile[] {
  const denied = files.findIndex(
    (file, at) => records[at]?.namespace !== namespaceOf(principal, ownerOf(file)),
  );
  if (denied === -1) return files.map((file, at) => ({ ...file, ...recorded(records[at]) }));
  const at = inRequestOrder<JobFile, InlineJobFile>(files, inline).indexOf(files[denied] as JobFile);
  throw new ServiceError("file_reference_denied", `files[${at}] is not available to the caller.`, {
    details: [{ path: `files[${at}]`, problem: "is unknown, expired, or belongs to somebody else" }],
  });
}

const recorded = (record: ObjectRecord | undefined) =>
  record && { size: record.size, content_type: record.contentType };
