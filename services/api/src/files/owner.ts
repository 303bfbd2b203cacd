/** Whose files a request names, from the kind, id and version in a query or form. Pure; the input is untrusted. */
import { type FileOwner, type Problem, RESOURCE_ID_PATTERN } from "@svc/contracts";
import { invalidRequest } from "@svc/service-kit";

export interface OwnerFields {
  kind?: string | undefined;
  id?: string | undefined;
  version?: string | undefined;
}

const VERSION = /^-?\d{1,15}(\.\d{1,15})?$/;

/** Throws `invalid_request` that names every wrong field. */
export function ownerOf({ kind = "user", id, version }: OwnerFields): FileOwner {
  const problems: Problem[] = [];
  const hasVersion = version !== undefined && version !== "";
  if (kind !== "user" && kind !== "agent" && kind !== "skill") {
    throw invalidRequest([{ path: "kind", problem: "must be user, agent or skill" }]);
  }
  if (kind !== "user" && !RESOURCE_ID_PATTERN.test(id ?? "")) {
    problems.push({ path: "id", problem: `must be 1 to 128 of A-Z, a-z, 0-9, _ . : - for kind ${kind}` });
  }
  if (kind === "skill" && !VERSION.test(version ?? "")) {
    problems.push({ path: "version", problem: "must be a number for kind skill" });
  }
  if (kind !== "skill" && hasVersion) {
    problems.push({ path: "version", problem: `is not allowed for kind ${kind}` });
  }
  if (problems.length > 0) throw invalidRequest(problems);
  switch (kind) {
    case "user":
      return { kind };
    case "agent":
      return { kind, resourceId: id ?? "" };
    case "skill":
      return { kind, resourceId: id ?? "", version: Number(version) };
  }
}
