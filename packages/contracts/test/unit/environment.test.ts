import { describe, expect, it } from "vitest";
import { environmentSchema, parseEnvironment } from "../../src/environment.ts";

const fails = (env: object) => parseEnvironment(env as Record<string, unknown>).problems;

describe("the variables of a request", () => {
  it("are NAME=value in the order of the request", () => {
    const env = { B: "2", _a1: "", PATH: "/x", LD_PRELOAD: "a=b\n", svc_x: "é" };
    expect(parseEnvironment(env)).toEqual({
      variables: ["B=2", "_a1=", "PATH=/x", "LD_PRELOAD=a=b\n", "svc_x=é"],
      problems: [],
    });
    expect(environmentSchema.safeParse(parseEnvironment(env).variables).success).toBe(true);
  });

  it("__proto__ is a name like any other", () => {
    expect(parseEnvironment(JSON.parse('{"__proto__": "x"}')).variables).toEqual(["__proto__=x"]);
  });

  it.each(["", "1A", "A-B", "A=B", "A B", "é", "A\0", "A\n", "\ud800", "x".repeat(257)])(
    "the name %j is refused",
    (name) => {
      const [problem] = fails({ [name]: "" });
      expect(problem?.path).toBe("env");
      expect(problem?.problem).toContain("is not a name of a variable");
    },
  );

  it.each(["SVC_A", "SVC_", "SANDBOX_TOOL_SOCKET"])("the reserved name %s is refused by name", (name) => {
    expect(fails({ [name]: "x" })).toEqual([
      { path: `env.${name}`, problem: expect.stringContaining("is reserved") },
    ]);
  });

  it.each([
    [5, "must be a string"],
    [null, "must be a string"],
    [{}, "must be a string"],
    ["a\0b", "must not contain NUL"],
    ["\ud800", "must be valid Unicode"],
    ["é".repeat(4097), "must have at most 8192 bytes"],
  ])("the value %j is refused by the variable's name", (value, problem) => {
    expect(fails({ OK: "1", A: value })).toEqual([{ path: "env.A", problem }]);
  });

  it("values of 8 KiB, 64 variables and 64 KiB together are the most", () => {
    const many = (count: number, value: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`V${at}`, value]));
    expect(fails(many(64, ""))).toEqual([]);
    expect(fails(many(65, ""))).toEqual([{ path: "env", problem: "must have at most 64 variables" }]);
    expect(fails(many(7, "x".repeat(8192)))).toEqual([]);
    expect(fails(many(8, "x".repeat(8192)))[0]?.problem).toContain("65536 bytes");
  });
});
