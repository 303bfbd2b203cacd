import { type JobFile, newId, type ObjectRecord, ServiceError } from "@svc/contracts";
import { describe, expect, it } from "vitest";
import { authoriseRefs, parseFiles } from "../../src/exec/refs.ts";

const RULES = { maxFiles: 256, names: { maxLength: 256, maxDepth: 10 } };
const REF = { id: newId(), storage_session_id: newId(), name: "data.csv" };
const ref = (change: object = {}) => ({ ...REF, ...change });
const parse = (...files: unknown[]) => parseFiles(files, RULES).files;

function refusal(run: () => unknown): ServiceError {
  try {
    run();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}
const pathsOf = (error: ServiceError) => error.details?.map(({ path }) => path);

describe("a reference", () => {
  it("is a user's file by default", () => {
    expect(parse(ref())).toEqual([{ ...REF, kind: "user" }]);
  });

  it.each([
    [{ kind: "user", resource_id: REF.id }],
    [{ kind: "user", resource_id: "anything / at all \u0001" }],
    [{ kind: "user", resource_id: "" }],
    [{ kind: "agent", resource_id: "agent_1.a:b-c" }],
    [{ kind: "agent", resource_id: "x".repeat(128) }],
    [{ kind: "skill", resource_id: "s", version: 0 }],
    [{ kind: "skill", resource_id: "s", version: -1.5 }],
    [{ kind: "user", entity_id: "e" }],
  ])("keeps what the caller said: %j", (change) => {
    expect(parse(ref(change))).toEqual([{ ...REF, ...change }]);
  });

  it("takes null as absence and ignores what it does not know", () => {
    const nothing = { kind: null, resource_id: null, version: null, entity_id: null };
    expect(parse(ref({ ...nothing, path: "/x", session_id: "y" }))).toEqual([{ ...REF, kind: "user" }]);
  });

  it.each([
    [{ id: "short" }, "id"],
    [{ id: undefined }, "id"],
    [{ id: "123e4567-e89b-12d3-a456-426614174000" }, "id"],
    [{ id: 5 }, "id"],
    [{ storage_session_id: "../../../../etc/passw" }, "storage_session_id"],
    [{ storage_session_id: null }, "storage_session_id"],
    [{ name: undefined }, "name"],
    [{ name: 5 }, "name"],
    [{ name: "" }, "name"],
    [{ name: "../data.csv" }, "name"],
    [{ name: "/data.csv" }, "name"],
    [{ name: "a\\b" }, "name"],
    [{ name: "a\u0000" }, "name"],
    [{ name: "\ud800" }, "name"],
    [{ name: "a/" }, "name"],
    [{ name: "a".repeat(257) }, "name"],
    [{ name: "a/b/c/d/e/f/g/h/i/j/k" }, "name"],
    [{ kind: "User" }, "kind"],
    [{ kind: "tenant" }, "kind"],
    [{ kind: 1 }, "kind"],
    [{ kind: "agent" }, "resource_id"],
    [{ kind: "agent", resource_id: "" }, "resource_id"],
    [{ kind: "agent", resource_id: "a b" }, "resource_id"],
    [{ kind: "agent", resource_id: "a/b" }, "resource_id"],
    [{ kind: "agent", resource_id: "a\n" }, "resource_id"],
    [{ kind: "agent", resource_id: "x".repeat(129) }, "resource_id"],
    [{ kind: "agent", resource_id: "a", version: 1 }, "version"],
    [{ kind: "skill", version: 1 }, "resource_id"],
    [{ kind: "skill", resource_id: "s" }, "version"],
    [{ kind: "skill", resource_id: "s", version: "1" }, "version"],
    [{ kind: "skill", resource_id: "s", version: Number.POSITIVE_INFINITY }, "version"],
    [{ kind: "user", version: 1 }, "version"],
    [{ version: 0 }, "version"],
    [{ entity_id: 5 }, "entity_id"],
  ])("%j is invalid_file_reference and names %s", (change, field) => {
    const error = refusal(() => parse(ref({ name: "first" }), ref(change)));
    expect(error).toMatchObject({ code: "invalid_file_reference", status: 400 });
    expect(pathsOf(error)).toEqual([`files[1].${field}`]);
    expect(error.message).toContain(`files[1].${field}`);
  });

  it.each([[null], ["id"], [5], [[]], [undefined]])("%j is none", (item) => {
    const error = refusal(() => parse(ref(), item));
    expect(error.code).toBe("invalid_file_reference");
    expect(pathsOf(error)).toEqual(["files[1]"]);
  });
});

describe("several references", () => {
  it("all their problems are named at once", () => {
    const error = refusal(() => parse(ref({ id: "x", name: 5 }), ref(), ref({ kind: "skill" })));
    expect(pathsOf(error)).toEqual([
      "files[0].id",
      "files[0].name",
      "files[2].resource_id",
      "files[2].version",
    ]);
  });

  it.each([
    [
      ["a", "b", "a"],
      ["files[0].name", "files[2].name"],
    ],
    [
      ["a/b", "x", "a"],
      ["files[0].name", "files[2].name"],
    ],
    [
      ["a", "a/b/c"],
      ["files[0].name", "files[1].name"],
    ],
    [
      [".dirkeep", ".dirkeep"],
      ["files[0].name", "files[1].name"],
    ],
  ])("the names %j conflict: both indices are named", (names, paths) => {
    const error = refusal(() => parse(...names.map((name) => ref({ name }))));
    expect(error).toMatchObject({ code: "invalid_file_reference", status: 400 });
    expect(pathsOf(error)).toEqual(paths);
  });

  it("one file may be staged under several names", () => {
    expect(parse(ref({ name: "a" }), ref({ name: "b" }))).toHaveLength(2);
  });

  it("256 are accepted, 257 are too many, whatever they are", () => {
    const files = Array.from({ length: 256 }, (_, at) => ref({ name: `f${at}` }));
    expect(parse(...files)).toHaveLength(256);
    expect(refusal(() => parse(...files, null))).toMatchObject({ code: "too_many_files", status: 400 });
  });

  it.each([[null], [undefined], [[]]])("%j is no file", (files) => {
    expect(parseFiles(files, RULES)).toEqual({ files: [] });
  });
});

describe("authorisation", () => {
  const caller = { tenantId: "t1", userId: "u1" };
  const file = (change: Partial<JobFile> = {}): JobFile => ({ ...REF, kind: "user", ...change });
  const record = (namespace: string): ObjectRecord => ({
    id: REF.id,
    storage_session_id: REF.storage_session_id,
    namespace,
    filename: "data.csv",
    size: 1,
    etag: "e",
    contentType: "text/csv",
    lastModified: "2026-01-31T10:00:00.000Z",
    readOnly: false,
  });
  const authorise = (...pairs: [JobFile, ObjectRecord | undefined][]) =>
    authoriseRefs(
      { files: pairs.map(([each]) => each) },
      pairs.map(([, each]) => each),
      caller,
    );

  it.each([
    [file(), "t1:user:u1"],
    [file({ resource_id: "another-user" }), "t1:user:u1"],
    [file({ kind: "agent", resource_id: "a1" }), "t1:agent:a1"],
    [file({ kind: "skill", resource_id: "s1", version: 2 }), "t1:skill:s1:v:2"],
  ])("the caller's own file passes: %j", (own, namespace) => {
    expect(authorise([own, record(namespace)])).toEqual([{ ...own, size: 1, content_type: "text/csv" }]);
  });

  it.each([
    ["unknown, expired or deleted", file(), undefined],
    ["of another user", file(), record("t1:user:u2")],
    ["of another user who is named as the resource", file({ resource_id: "u2" }), record("t1:user:u2")],
    ["of another tenant", file(), record("t2:user:u1")],
    ["of an agent, asked for as the user's", file(), record("t1:agent:u1")],
    [
      "of the user, asked for as an agent's",
      file({ kind: "agent", resource_id: "u1" }),
      record("t1:user:u1"),
    ],
    ["of another agent", file({ kind: "agent", resource_id: "a1" }), record("t1:agent:a2")],
    ["of another version", file({ kind: "skill", resource_id: "s", version: 1 }), record("t1:skill:s:v:11")],
    ["of a namespace that begins alike", file(), record("t1:user:u1:v:1")],
  ] as const)("a file %s is denied: 403 with its index", (_what, foreign, found) => {
    const error = refusal(() => authorise([file(), record("t1:user:u1")], [foreign, found]));
    expect(error).toMatchObject({ code: "file_reference_denied", status: 403 });
    expect(pathsOf(error)).toEqual(["files[1]"]);
  });

  it("foreign and unknown files look alike", () => {
    const shown = [record("t2:user:u9"), undefined].map((found) => {
      const { code, message, details } = refusal(() => authorise([file(), found]));
      return JSON.stringify({ code, message, details });
    });
    expect(new Set(shown).size).toBe(1);
    expect(shown[0]).not.toContain("t2");
  });

  it("the first bad reference refuses the request", () => {
    const error = refusal(() =>
      authorise([file(), undefined], [file(), record("t1:user:u1")], [file(), undefined]),
    );
    expect(pathsOf(error)).toEqual(["files[0]"]);
  });
});
