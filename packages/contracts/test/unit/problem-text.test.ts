import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  argsSchema,
  execBodySchema,
  fileRefSchema,
  programmaticStartBodySchema,
  toolResultSchema,
} from "../../src/index.ts";
import { fieldPath, problemsOf } from "../../src/problem-text.ts";

const problems = (schema: z.ZodType, value: unknown): string[] => {
  const { error } = schema.safeParse(value);
  return error === undefined ? [] : problemsOf(error).map(({ path, problem }) => `${path}: ${problem}`);
};

describe("schema errors are told in one form of words", () => {
  it.each<[z.ZodType, unknown, string[]]>([
    [execBodySchema, {}, ["code: is required"]],
    [execBodySchema, { code: 5 }, ["code: must be a string"]],
    [execBodySchema, { code: null }, ["code: must be a string"]],
    [execBodySchema, { code: "", args: "a b" }, ["args: must be a list of strings"]],
    [execBodySchema, { code: "", args: ["a", 5] }, ["args[1]: must be a string"]],
    [execBodySchema, { code: "", run_timeout: "5" }, ["run_timeout: must be a number"]],
    [execBodySchema, { code: "", run_timeout: 0 }, ["run_timeout: must be at least 1"]],
    [execBodySchema, { code: "", run_timeout: 1.5 }, ["run_timeout: must be a whole number"]],
    [execBodySchema, { code: "", files: {} }, ["files: must be a list"]],
    [execBodySchema, { code: "", version: "x".repeat(257) }, ["version: must have at most 256 characters"]],
    [programmaticStartBodySchema, {}, ["code: is required", "tools: is required"]],
    [programmaticStartBodySchema, { code: "", tools: [] }, ["code: must not be empty"]],
    [
      fileRefSchema,
      { id: "x".repeat(21), storage_session_id: "x".repeat(21), name: "a", kind: "x" },
      ['kind: must be one of "user", "agent", "skill"'],
    ],
    [z.array(toolResultSchema).min(1), [], [": must have at least 1 item"]],
    [
      z.array(toolResultSchema),
      [{ is_error: 1 }],
      ["[0].call_id: is required", "[0].is_error: must be true or false"],
    ],
    [argsSchema, Array(257).fill(""), [": must have at most 256 items"]],
    [z.number().positive(), -1, [": must be more than 0"]],
    [z.strictObject({ a: z.int() }), { a: 1, b: 2 }, [": has fields that are not known"]],
    [z.union([z.string(), z.array(z.string())]), 5, [": has none of the forms that are allowed"]],
    [z.literal("a"), "b", [': must be "a"']],
    [z.iso.datetime(), "x", [": is not valid"]],
    [z.date(), "x", [": must be of another type"]],
  ])("case %#", (schema, value, expected) => {
    expect(problems(schema, value)).toEqual(expected);
  });

  it("paths are written as in JavaScript", () => {
    expect(fieldPath(["files", 2, "name"])).toBe("files[2].name");
  });
});
