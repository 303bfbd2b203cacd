import { BadToolRequest, parseToolRequest, RAW_INPUT_TYPE } from "@svc/runner/programmatic/tool-request";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const TOOLS = ["add", 'a "quoted"\nname'];
const parse = (body: string | Buffer, headers: Record<string, string> = {}) =>
  parseToolRequest(headers, Buffer.from(body), TOOLS);
const raw = (index: string) => ({ "content-type": RAW_INPUT_TYPE, "x-tool-index": index });
const objects = fc
  .dictionary(fc.string(), fc.jsonValue())
  .map((object) => JSON.parse(JSON.stringify(object)));

describe("a request of a program", () => {
  it("goes on to the gateway with its arguments as they were written, in both forms", () => {
    fc.assert(
      fc.property(fc.string(), objects, fc.nat({ max: 1 }), (name, input, index) => {
        const envelope = JSON.stringify({ tool_name: name, input }, undefined, 1);
        expect(parse(envelope)).toEqual({ name, input, text: envelope });
        const call = parse(JSON.stringify(input), raw(String(index)));
        expect(call.name).toBe(TOOLS[index]);
        expect(JSON.parse(call.text)).toEqual({ tool_name: TOOLS[index], input });
      }),
    );
    const exact = '{"tool_name":"add","input":{"n":12345678901234567890,"__proto__":1.0}}';
    expect(parse(exact).text).toBe(exact);
  });

  it("that is anything else is refused, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.uint8Array().map((bytes) => Buffer.from(bytes)),
        ),
        (body) => {
          expect(() => parse(body as string)).toThrow(BadToolRequest);
        },
      ),
    );
    for (const index of ["", "2", "-1", "0x1", "1e0", "constructor", "00000000"]) {
      expect(() => parse("{}", raw(index)), index).toThrow(BadToolRequest);
    }
  });
});
