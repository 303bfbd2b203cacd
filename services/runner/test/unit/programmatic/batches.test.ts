import { MAX_RECORDED_CALLS, recordToolCallsSchema } from "@svc/contracts";
import { batchesOf, bodyOf } from "@svc/runner/programmatic/outstanding-calls";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const callOf = (callId: string, input: unknown) => {
  const text = `{"tool_name":"add","input":${JSON.stringify(input)} }`;
  return { callId, text, bytes: Buffer.byteLength(text) };
};
const numbered = (inputs: readonly unknown[]) => inputs.map((input, at) => callOf(`call_${at}`, input));

describe("batches of calls", () => {
  it("hold all calls once and in order, within the limit, and leave out only what is too large alone", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", maxLength: 80 })),
        fc.integer({ max: 300 }),
        (inputs, maxBytes) => {
          const calls = numbered(inputs);
          const { batches, tooLarge } = batchesOf(calls, maxBytes);
          const isTooLarge = (call: (typeof calls)[number]) => Buffer.byteLength(bodyOf([call])) > maxBytes;
          expect(tooLarge).toEqual(calls.filter(isTooLarge));
          expect(batches.flat()).toEqual(calls.filter((call) => !isTooLarge(call)));
          for (const batch of batches) {
            const body = bodyOf(batch);
            expect(Buffer.byteLength(body)).toBeLessThanOrEqual(maxBytes);
            expect(recordToolCallsSchema.parse(JSON.parse(body)).calls).toEqual(
              batch.map(({ callId, text }) => ({ call_id: callId, call: JSON.parse(text) })),
            );
          }
        },
      ),
    );
  });

  it("are as few as the limits allow", () => {
    const calls = numbered(Array.from({ length: MAX_RECORDED_CALLS + 1 }, () => 1));
    expect(batchesOf(calls, 2 ** 20).batches.map(({ length }) => length)).toEqual([MAX_RECORDED_CALLS, 1]);
    const three = calls.slice(0, 3);
    const exact = Buffer.byteLength(bodyOf(three));
    expect(batchesOf(three, exact).batches).toEqual([three]);
    expect(batchesOf(three, exact - 1).batches).toEqual([three.slice(0, 2), three.slice(2)]);
    expect(batchesOf([], exact)).toEqual({ batches: [], tooLarge: [] });
  });
});
