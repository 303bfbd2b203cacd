import { type InlineJobFile, inRequestOrder } from "@svc/contracts";
import { describe, expect, it } from "vitest";
import { authoriseRefs, parseFiles } from "../../src/exec/refs.ts";
import { FILE_RULES, refNamed, refusal } from "../support/exec-rules.ts";

const parse = (...files: unknown[]) => parseFiles(files, FILE_RULES);
const inline = (name: string, content: unknown = "", more: object = {}) => ({ name, content, ...more });

describe("an inline file", () => {
  it("stands beside references, under its own index", () => {
    const stored = [refNamed("b"), refNamed("d")];
    const { files, inline: contents } = parse(
      inline("a", "é"),
      stored[0],
      inline("c", "AP8=", { encoding: "base64" }),
      stored[1],
    );
    expect(files).toEqual(stored.map((file) => ({ ...file, kind: "user" })));
    expect(contents).toEqual([
      { at: 0, name: "a", content: "é", encoding: "utf8" },
      { at: 2, name: "c", content: "AP8=", encoding: "base64" },
    ]);
    expect(inRequestOrder<{ name: string }, InlineJobFile>(files, contents).map(({ name }) => name)).toEqual([
      "a",
      "b",
      "c",
      "d",
    ]);
  });

  it("null counts as absent, unknown fields have no effect", () => {
    const files = [inline("a", "", { encoding: null, id: null, path: "/etc/passwd" })];
    expect(parse(...files).inline).toEqual([{ at: 0, name: "a", content: "", encoding: "utf8" }]);
  });

  it.each<[string, object, string]>([
    ["without a name", { content: "" }, "files[1].name: is required"],
    ["with a name that is not text", inline(5 as never), "files[1].name: must be a string"],
    ["with a name that climbs", inline("../x"), "files[1].name: must not have empty, . or .. segments"],
    ["with an absolute name", inline("/etc/passwd"), "files[1].name: must be a relative path"],
    [
      "with NUL in its name",
      inline("a\0"),
      "files[1].name: must not contain backslashes or control characters",
    ],
    ["with content that is not text", inline("a", 5), "files[1].content: must be a string"],
    ["with content that is a list", inline("a", []), "files[1].content: must be a string"],
    [
      "in an unknown encoding",
      inline("a", "", { encoding: "hex" }),
      'files[1].encoding: must be one of "utf8", "base64"',
    ],
    [
      "with a lone surrogate",
      inline("a", "\ud800"),
      "files[1].content: must be valid Unicode; send other bytes as base64",
    ],
    ["with an id as well", { ...refNamed("a"), content: "" }, "files[1]: must not have both content and id"],
  ])("%s is refused with its index", (_what, file, problem) => {
    const error = refusal(() => parse(refNamed("first"), file));
    expect(error).toMatchObject({ code: "invalid_file_reference", status: 400, message: `${problem}.` });
  });

  it.each([
    "A",
    "AA",
    "AAA",
    "A===",
    "AA==\n",
    " AA==",
    "AA=A",
    "AB==",
    "AAB=",
    "AA-_",
    "====",
    "é===",
    "AA==AA==",
  ])("base64 that says nothing, or nothing in one way, is refused: %j", (content) => {
    const error = refusal(() => parse(inline("a", content, { encoding: "base64" })));
    expect(error.details?.[0]?.path).toBe("files[0].content");
  });

  it.each([{}, { name: "a" }, { name: "a", content: null }, { name: "a", kind: "agent" }])(
    "%j is neither content nor a reference, and is told what is missing",
    (file) => {
      const error = refusal(() => parse(file));
      expect(error.message).toMatch(/^files\[0\]: needs content, or id and storage_session_id/);
    },
  );

  it.each([
    [
      [inline("a"), refNamed("a")],
      [0, 1],
    ],
    [
      [refNamed("x"), inline("a/b"), refNamed("y"), inline("a")],
      [1, 3],
    ],
    [
      [refNamed("a"), refNamed("x"), inline("a/b")],
      [0, 2],
    ],
  ])("conflicts name both indices, whatever kind of file they are", (files, places) => {
    const error = refusal(() => parse(...files));
    expect(error.code).toBe("invalid_file_reference");
    expect(error.details?.map(({ path }) => path)).toEqual(places.map((at) => `files[${at}].name`));
  });

  it("a foreign reference behind inline files is denied by its own index", () => {
    const parsed = parse(inline("a"), inline("b"), refNamed("c"), inline("d"));
    const error = refusal(() => authoriseRefs(parsed, [undefined], { tenantId: "t", userId: "u" }));
    expect(error.details?.[0]?.path).toBe("files[2]");
  });

  it("counts among the files of a request", () => {
    const files = Array.from({ length: 257 }, (_, at) => inline(`f${at}`));
    expect(refusal(() => parse(...files)).code).toBe("too_many_files");
  });
});

describe("the size of inline files", () => {
  const MIB = 2 ** 20;
  const bytes = (count: number) => Buffer.alloc(count).toString("base64");

  it("1 MiB each and 4 MiB together are the most, decoded", () => {
    const four = [0, 1, 2, 3].map((at) => inline(`f${at}`, bytes(MIB), { encoding: "base64" }));
    expect(parse(...four).inline).toHaveLength(4);
    expect(parse(inline("a", "é".repeat(MIB / 2))).inline).toHaveLength(1);
    for (const files of [
      [...four, inline("one", "x")],
      [inline("a", "x".repeat(MIB + 1))],
      [inline("a", "é".repeat(MIB / 2 + 1))],
      [inline("a", bytes(MIB + 1), { encoding: "base64" })],
    ]) {
      expect(refusal(() => parse(...files))).toMatchObject({ code: "request_too_large", status: 422 });
    }
  });

  it("what is too large is named with its size", () => {
    const error = refusal(() => parse(refNamed("a"), inline("b", "x".repeat(MIB + 1))));
    expect(error.message).toContain("files[1].content: has 1,048,577 bytes; at most 1 MiB");
  });
});
