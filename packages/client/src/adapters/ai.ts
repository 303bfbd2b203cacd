/**
 * The tool for the AI SDK: `generateText({ tools: { run_code: aiTool(svc) } })`. Needs `ai`. Its output is
 * `{text, result}`, of which the model reads `text`.
 */
import { jsonSchema, type Tool, tool } from "ai";
import type { Svc } from "../svc.ts";
import { type CodeInput, type CodeOutput, type CodeToolOptions, codeTool } from "./code-tool.ts";

export function aiTool(svc: Svc, options?: CodeToolOptions): Tool<CodeInput, CodeOutput> {
  const { description, schema, run } = codeTool(svc, options);
  return tool({
    description,
    inputSchema: jsonSchema<CodeInput>(schema),
    execute: (input, { abortSignal }) => run(input, abortSignal),
    toModelOutput: ({ output }) => ({ type: "text", value: output.text }),
  });
}
