import {
  answersOf,
  canonicalResults,
  checkPending,
  historyBytes,
} from "@svc/api/programmatic/accept-results";
import { smallAnswers } from "@svc/api/programmatic/round-jobs";
import { storedBytesOf } from "@svc/api/programmatic/store";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const refusal = (run: () => unknown) => {
  try {
    run();
    return "accepted";
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("tool results", () => {
  it("become what is remembered: results as JSON, failures as their message", () => {
    expect(
      answersOf([
        { call_id: "a", result: { x: [1, null] } },
        { call_id: "b" },
        { call_id: "c", result: "ignored", is_error: true, error_message: "no" },
        { call_id: "d", is_error: true },
        { call_id: "e", result: null, is_error: null, error_message: "ignored" },
      ]),
    ).toEqual([
      { call_id: "a", outcome: { result_json: '{"x":[1,null]}' } },
      { call_id: "b", outcome: { result_json: "null" } },
      { call_id: "c", outcome: { error_message: "no" } },
      { call_id: "d", outcome: { error_message: "tool execution failed" } },
      { call_id: "e", outcome: { result_json: "null" } },
    ]);
  });

  it("are the same in any order, of items and of keys, and with what is absent written out", () => {
    const items = fc.uniqueArray(fc.record({ call_id: fc.string(), result: fc.jsonValue() }), {
      selector: ({ call_id }) => call_id,
      minLength: 1,
    });
    fc.assert(
      fc.property(items, (results) => {
        const other = results.toReversed().map((item) => ({ ...item, is_error: false, error_message: null }));
        return canonicalResults(results) === canonicalResults(other);
      }),
    );
    expect(canonicalResults([{ call_id: "a" }])).toBe(canonicalResults([{ call_id: "a", result: null }]));
    expect(canonicalResults([{ call_id: "a", result: { b: 1, a: 2 } }])).toBe(
      canonicalResults([{ call_id: "a", result: { a: 2, b: 1 } }]),
    );
  });

  it.each([
    [{ call_id: "b" }],
    [{ call_id: "a", result: 1 }],
    [{ call_id: "a", result: "null" }],
    [{ call_id: "a", is_error: true }],
    [{ call_id: "a", result: { ["__proto__"]: 1 } }],
  ])("that differ are not the same: %j", (other) => {
    expect(canonicalResults([other])).not.toBe(canonicalResults([{ call_id: "a" }]));
  });

  it("travel with the resume while they are small together", () => {
    const ofBytes = (...sizes: number[]) =>
      answersOf(sizes.map((size, at) => ({ call_id: `c${at}`, result: "é".repeat((size - 2) / 2) })));
    const small = ofBytes(4096, 4096);
    expect(smallAnswers(small)).toEqual(small);
    expect(smallAnswers(ofBytes(4096, 4098))).toBeUndefined();
    expect(smallAnswers(answersOf([{ call_id: "a", is_error: true, error_message: "n".repeat(8193) }]))).toBe(
      undefined,
    );
  });

  it("answer pending calls, each once", () => {
    const pending = ["a", "b"];
    expect(refusal(() => checkPending([{ call_id: "b" }], pending))).toBe("accepted");
    expect(refusal(() => checkPending([{ call_id: "b" }, { call_id: "a" }], pending))).toBe("accepted");
    for (const ids of [["c"], ["a", "c"], ["a", "a"], [""], ["__proto__"]]) {
      const results = ids.map((call_id) => ({ call_id }));
      expect(
        refusal(() => checkPending(results, pending)),
        ids.join(),
      ).toBe("invalid_tool_results");
    }
  });

  it("have limits to the byte, each and all together", () => {
    const limits = { maxResultBytes: 10, maxHistoryBytes: 25 };
    const of = (...sizes: number[]) =>
      sizes.map((size) => ({ call_id: "a", outcome: { result_json: "x".repeat(size) } }));
    expect(historyBytes(0, of(10, 10, 5), limits)).toBe(25);
    expect(historyBytes(15, of(10), limits)).toBe(25);
    expect(refusal(() => historyBytes(0, of(11), limits))).toBe("tool_result_too_large");
    expect(refusal(() => historyBytes(16, of(10), limits))).toBe("tool_history_too_large");
    const message = [{ call_id: "a", outcome: { error_message: "é".repeat(6) } }];
    expect(refusal(() => historyBytes(0, message, limits))).toBe("tool_result_too_large");
  });

  it("are stored as JSON within JSON, here and with the tool call server", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ unit: "binary" }), (result, error_message) => {
        for (const { outcome } of answersOf([
          { call_id: "a", result },
          { call_id: "b", is_error: true, error_message },
        ])) {
          expect(storedBytesOf(outcome)).toBeGreaterThanOrEqual(
            2 * Buffer.byteLength(JSON.stringify(outcome)),
          );
        }
      }),
    );
  });
});
