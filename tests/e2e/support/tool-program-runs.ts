/** What the tests of programs with tools do alike in each language: the tools, their values, and a run that must end well. */
import type { FileRef } from "@svc/contracts";
import type { Api } from "@svc/test-kit/system/api";
import { type Drive, drive, type Start, type Tools } from "@svc/test-kit/system/programmatic";
import { expect } from "vitest";

export const TOOL_LIMIT = "Execution exceeded maximum tool calls (200)";
export const ADD = { add: ({ a, b }) => a + b } satisfies Tools;
/** `get`: fails for keys that are not one of the letters before x. */
export const LOOK_UP = {
  get: ({ key }: { key: string }) => {
    if (key.length > 1 || key >= "x") throw new Error(`no key "${key}": $& {}`);
    return `value of ${key}`;
  },
} satisfies Tools;

export const JSON_VALUES = [
  ...[null, true, false, 0, -7, 1.5, 1e100, 9007199254740991, "", "text", "é\u{1F600}\n\t\"'\\$&`", "null"],
  ...['{"a":1}', [], {}, [1, [2, [3, null]]], { a: { "b-c": [true] }, "": "ü", __proto__x: 1 }],
];
export const VALUES: Tools = {
  size: () => JSON_VALUES.length,
  value: ({ at }) => JSON_VALUES[at],
  nothing: () => undefined,
};

interface More extends Drive {
  files?: FileRef[];
}

/** `api`: asked when a program runs; the system starts after the tests were collected. */
export function toolProgramRuns(api: () => Api, plain: Omit<Start, "code">) {
  const run = (code: string, tools: Tools, { files = [], ...how }: More = {}) =>
    drive(api(), { ...plain, code, files }, tools, how);

  /** Runs a program that must end well, saying nothing on stderr. */
  async function completed(code: string, tools: Tools, how: More = {}) {
    const driven = await run(code, tools, how);
    const well = { status: "completed", stderr: "", code: 0, signal: null, sandbox_status: null };
    expect(driven.answer).toMatchObject(well);
    expect(driven.answer.tool_calls_made).toBe(driven.batches.flat().length);
    return { ...driven, stdout: driven.answer.stdout };
  }
  return { run, completed };
}
