import { parseCancel, parseResume, parseStart, tokenOf } from "@svc/api/programmatic/request";
import { describe, expect, it } from "vitest";

const rules = {
  defaultRunMs: 60_000,
  maxRunMs: 300_000,
  maxFiles: 256,
  keepsSessions: false,
  names: { maxLength: 256, maxDepth: 10 },
  runtimes: undefined,
  maxTools: 100,
};
const tools = [{ name: "search", description: "d", parameters: { type: "object" } }];
const start = (body: object) => parseStart({ code: "1", tools, ...body }, rules);
const refusal = (run: () => unknown) => {
  try {
    run();
    return "accepted";
  } catch (error) {
    const { code, details } = error as { code: string; details?: { path: string }[] };
    return details === undefined ? code : `${code} ${details.map(({ path }) => path).join(" ")}`;
  }
};

describe("a body", () => {
  it.each([undefined, null, ""])("without a continuation token starts: %j", (continuation_token) => {
    expect(tokenOf({ continuation_token })).toBeUndefined();
  });

  it.each(["x", 1, {}, false])("with any other is a resume: %j", (continuation_token) => {
    expect(tokenOf({ continuation_token })).toBe(continuation_token);
  });
});

describe("a start", () => {
  it("has defaults", () => {
    expect(start({})).toEqual({
      language: "python",
      version: "*",
      code: "1",
      args: [],
      run_timeout: 60_000,
      files: [],
      tools: [{ name: "search", description: "d", parameters_json: '{"type":"object"}' }],
    });
  });

  it.each([
    [{ lang: "bash" }, "bash"],
    [{ lang: "bash", language: "py3" }, "python"],
    [{ language: "SH" }, "bash"],
    [{ lang: null, language: null }, "python"],
    [{ lang: "" }, "python"],
  ])("chooses the language: %j", (body, language) => {
    expect(start(body).language).toBe(language);
  });

  it.each([{ lang: "js" }, { language: "ruby" }, { lang: "py", language: "c" }])(
    "refuses languages without tools: %j",
    (body) => {
      expect(refusal(() => start(body))).toBe("unsupported_language");
    },
  );

  it.each([
    [{ timeout: 1500.2 }, 1501],
    [{ timeout: 0.5 }, 1],
    [{ run_timeout: 10 }, 10],
    [{ timeout: 20, run_timeout: 10 }, 20],
    [{ timeout: 1e12 }, 300_000],
    [{ timeout: null }, 60_000],
  ])("bounds a round: %j", (body, limit) => {
    expect(start(body).run_timeout).toBe(limit);
  });

  it.each([
    [{ code: "" }, "code"],
    [{ code: undefined }, "code"],
    [{ code: 1 }, "code"],
    [{ timeout: 0 }, "timeout"],
    [{ timeout: "1" }, "timeout"],
    [{ tools: undefined }, "tools"],
    [{ tools: Array.from({ length: 101 }, (_, at) => ({ name: `t${at}` })) }, "tools"],
    [{ tools: [{}] }, "tools[0].name"],
    [{ tools: [{ name: "" }] }, "tools[0].name"],
    [{ tools: [{ name: "x".repeat(257) }] }, "tools[0].name"],
    [{ tools: [{ name: "a", parameters: [] }] }, "tools[0].parameters"],
    [{ tools: ["a"] }, "tools[0]"],
    [{ tools: [{ name: "a-b" }, { name: "c" }, { name: "a b" }] }, "tools[0].name tools[2].name"],
    [{ tools: [{ name: "é" }, { name: "ü" }] }, "tools[0].name tools[1].name"],
  ])("refuses %j and says where", (body, where) => {
    expect(refusal(() => start(body))).toBe(`invalid_request ${where}`);
  });

  it("may declare no tool", () => {
    expect(start({ tools: [] }).tools).toEqual([]);
  });

  it("takes tools in the shape of function calling, and ignores what else they hold", () => {
    const item = { type: "function", function: { name: "a.b", parameters: { x: 1 } }, strict: true };
    expect(start({ tools: [item] }).tools).toEqual([{ name: "a.b", parameters_json: '{"x":1}' }]);
  });

  it("ignores what belongs to other routes", () => {
    const ignored = { session_id: 5, runtime_session_hint: {}, intent: 1, debug: "x", tool_results: "?" };
    expect(start(ignored)).toEqual(start({}));
  });
});

describe("a resume", () => {
  const resume = (tool_results: unknown) =>
    refusal(() => parseResume({ continuation_token: "t", tool_results }));

  it.each([
    [undefined, ""],
    [null, ""],
    [{}, ""],
    [[], ""],
    [[1], "[0]"],
    [[{}], "[0].call_id"],
    [[{ call_id: "a" }, { call_id: 1 }], "[1].call_id"],
    [[{ call_id: "a", is_error: "yes" }], "[0].is_error"],
    [[{ call_id: "a", error_message: 1 }], "[0].error_message"],
    [Array.from({ length: 201 }, (_, at) => ({ call_id: `c${at}` })), ""],
  ])("refuses results of another shape and says where: %j", (results, where) => {
    expect(resume(results)).toBe(`invalid_tool_results tool_results${where}`);
  });

  it("keeps any JSON of a result", () => {
    const result = JSON.parse('{"__proto__": {"x": 1}, "deep": [[[{}]]], "n": null}') as unknown;
    const parsed = parseResume({ continuation_token: "t", tool_results: [{ call_id: "a", result }] });
    expect(JSON.stringify(parsed.results[0]?.result)).toBe(JSON.stringify(result));
  });

  it("needs a token that is text", () => {
    const body = { continuation_token: 1, tool_results: [{ call_id: "a" }] };
    expect(refusal(() => parseResume(body))).toBe("invalid_continuation_token");
  });
});

describe("a cancellation", () => {
  it.each([{}, { request_id: "" }, { request_id: null }, { request_id: 1 }])("refuses %j", (body) => {
    expect(refusal(() => parseCancel(body))).toBe("invalid_request request_id");
  });
});
