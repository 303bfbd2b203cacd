/**
 * The tool for LangChain: `createAgent({ tools: [langchainTool(svc)] })`. Needs `@langchain/core`. The content of its
 * message is what the model reads, the artifact is the result of the run.
 */
import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import type { Svc } from "../svc.ts";
import { type CodeInput, type CodeToolOptions, codeTool } from "./code-tool.ts";

export interface LangchainToolOptions extends CodeToolOptions {
  /** Name under which the model calls the tool. Default: `run_code`. */
  name?: string | undefined;
}

export function langchainTool(
  svc: Svc,
  { name = "run_code", ...options }: LangchainToolOptions = {},
): StructuredToolInterface {
  const { description, schema, run } = codeTool(svc, options);
  return tool(
    async (input: CodeInput, config) => {
      const { text, result } = await run(input, config?.signal);
      return [text, result];
    },
    { name, description, schema, responseFormat: "content_and_artifact" },
  );
}
