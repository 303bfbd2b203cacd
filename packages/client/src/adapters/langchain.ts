/** The tool for LangChain: `createAgent({ tools: [langchainTool(svc)] })`. Needs `@langchain/core`. */
import { tool } from "@langchain/core/tools";
import type { Svc } from "../svc.ts";
import { type CodeInput, type CodeToolOptions, codeTool } from "./code-tool.ts";

export function langchainTool(svc: Svc, options?: CodeToolOptions) {
  const { name, description, schema, run } = codeTool(svc, options);
  return tool((input: CodeInput, config?: { signal?: AbortSignal }) => run(input, config?.signal), {
    name,
    description,
    schema,
  });
}
