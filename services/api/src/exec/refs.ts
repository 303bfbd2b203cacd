/**
 * File references of an execution: their rules (pure), and the question whether the caller's namespace owns them.
 * Foreign, unknown and expired files look alike: 403 with the index.
 */
import {
  type FileOwner,
  type FileRef,
  fileNameProblem,
  fileRefSchema,
  findPathConflict,
  type JobFile,
  type NameLimits,
  namespaceOf,
  type ObjectRecord,
  type Principal,
  type Problem,
  RESOURCE_ID_PATTERN,
  ServiceError,
} from "@svc/contracts";
import { fieldPath } from "@svc/service-kit";

export interface RefRules {
  maxFiles: number;
  names: NameLimits;
}

/** Checks the `files` of a request. Every problem is named; conflicts name both indices. */
export function parseRefs(files: readonly unknown[] | null | undefined, rules: RefRules): JobFile[] {
  const items = files ?? [];
  if (items.length > rules.maxFiles) {
    throw new ServiceError("too_many_files", `files: at most ${rules.maxFiles} are allowed.`);
  }
  const problems: Problem[] = [];
  const refs = items.map((item, index) => parseRef(item, index, rules.names, problems));
  if (problems.length > 0) throw refused(problems);
  const parsed = refs as JobFile[];
  const conflict = findPathConflict(parsed.map(({ name }) => name));
  if (conflict !== undefined) {
    throw refused(
      [conflict.first, conflict.second].map((at) => ({
        path: `files[${at}].name`,
        problem: conflict.problem,
      })),
    );
  }
  return parsed;
}

function refused(details: Problem[]): ServiceError {
  const first = details[0] as Problem;
  return new ServiceError("invalid_file_reference", `${first.path}: ${first.problem}.`, { details });
}

function parseRef(item: unknown, index: number, names: NameLimits, problems: Problem[]): JobFile | undefined {
  const result = fileRefSchema.safeParse(item);
  if (!result.success) {
    for (const issue of result.error.issues) {
      problems.push({ path: fieldPath(["files", index, ...issue.path]), problem: issue.message });
    }
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

/** Refuses the request at the first file that the caller's namespaces do not own. */
export function authoriseRefs(
  files: readonly JobFile[],
  records: readonly (ObjectRecord | undefined)[],
  principal: Principal,
): void {
  const denied = files.findIndex(
    (file, at) => records[at]?.namespace !== namespaceOf(principal, ownerOf(file)),
  );
  if (denied === -1) return;
  throw new ServiceError("file_reference_denied", `files[${denied}] is not available to the caller.`, {
    details: [{ path: `files[${denied}]`, problem: "is unknown, expired, or belongs to somebody else" }],
  });
}
