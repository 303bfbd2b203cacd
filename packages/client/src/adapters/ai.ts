/** The tool for the AI SDK: `generateText({ tools: { run_code: aiTool(svc) } })`. Needs `ai`. */
import { jsonSchema, tool } from "ai";
import type { Svc } from "../svc.ts";
import { type CodeInput, type CodeToolOptions, codeTool } from "./code-tool.ts";

export function aiTool(svc: Svc, options?: CodeToolOptions) {
  const { description, schema, run } = codeTool(svc, options);
  return tool({
    description,
    inputSchema: jsonSchema<CodeInput>(schema),
    execute: (input, { abortSignal }) => run(input, abortSignal),
  });
}
