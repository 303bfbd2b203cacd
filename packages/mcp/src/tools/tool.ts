/** Defines a tool of the server: its arguments, and what it does with the service. */

import type { CallToolResult, Tool as ListedTool } from "@modelcontextprotocol/sdk/types.js";
import { problemsOf } from "@svc/contracts";
import { z } from "zod";
import { type Service, ServiceRefusal } from "../service.ts";

export interface CallContext {
  service: Service;
  /** Aborted when nobody waits for the result any more. */
  signal: AbortSignal;
  /** Receives the output of a program while it runs. */
  onOutput: (text: string) => void;
}

export interface Tool {
  listed: ListedTool;
  /** Refuses wrong arguments with a sentence. */
  call: (args: unknown, context: CallContext) => Promise<CallToolResult>;
}

interface Definition<Input extends z.ZodObject> {
  name: string;
  title: string;
  description: string;
  input: Input;
  output?: z.ZodObject;
  /** The tool changes nothing that the service keeps. */
  isReadOnly: boolean;
  run: (input: z.infer<Input>, context: CallContext) => Promise<CallToolResult>;
}

export function defineTool<Input extends z.ZodObject>(definition: Definition<Input>): Tool {
  const { name, title, description, input, output, isReadOnly, run } = definition;
  const annotations = { readOnlyHint: isReadOnly, destructiveHint: false, openWorldHint: false };
  return {
    listed: {
      name,
      title,
      description,
      annotations,
      inputSchema: schemaOf(input),
      ...(output === undefined ? {} : { outputSchema: schemaOf(output) }),
    },
    call: async (args, context) => {
      const parsed = input.safeParse(args ?? {});
      if (parsed.success) return run(parsed.data, context);
      const [{ path, problem } = { path: "", problem: "is not valid" }] = problemsOf(parsed.error);
      throw new ServiceRefusal(`${path === "" ? "arguments" : path}: ${problem}.`, "invalid_request");
    },
  };
}

/** The schema of what a caller sends: fields with a default are optional. */
function schemaOf(schema: z.ZodObject): ListedTool["inputSchema"] {
  return z.toJSONSchema(schema, { io: "input" }) as ListedTool["inputSchema"];
}

/** A result as structured content, and as text for hosts that do not read structured content. */
export function structured(value: Record<string, unknown>): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value };
}
