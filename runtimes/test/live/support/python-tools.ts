/** Python programs with the tools that most tests use. */
import { expect } from "vitest";
import { echo, fails, runWithTools, type ToolProgram, value } from "./tools.ts";

export const weather = {
  description: 'What """the sky""" does.\nIn two lines \\N{x}.',
  parameters: {
    type: "object",
    properties: { unit: {}, city: {}, from: {}, "start-date": {}, days: {} },
    required: ["city", "days"],
  },
};
export const strict = {
  parameters: { type: "object", properties: { a: {}, b: {} }, additionalProperties: false },
};
export const tools = { weather: echo, strict: echo, anything: echo, value, fails };
export const python = (code: string, job: Partial<ToolProgram> = {}) =>
  runWithTools("python", { code, tools, definitions: { weather, strict }, ...job });
export const stdoutOf = async (code: string, job: Partial<ToolProgram> = {}) => {
  const { stdout, stderr, exitCode } = await python(code, job);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
};
