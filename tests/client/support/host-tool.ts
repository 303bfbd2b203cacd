/** Tools of the host for tests: real instances as an agent has them, that note what they were asked. */
import { type Tool, type ToolDefinition, tool } from "@librechat/agents";

export interface HostTool {
  instance: Tool;
  definition: ToolDefinition;
  /** The inputs so far, in the order of the calls. */
  inputs: Record<string, unknown>[];
  /** The most calls that were under way at once. */
  peak: () => number;
}

export interface HostToolOptions {
  /** Properties of the input by their JSON schema types; all are required unless named in `optional`. */
  properties?: Readonly<Record<string, string>>;
  optional?: readonly string[];
  /** As a tool of an MCP server: the client unwraps what it answers. */
  mcp?: boolean;
  /** The answer is a pair of content and artifact, of which the client takes the content. */
  pair?: boolean;
}

export function hostTool(
  name: string,
  answer: (input: Record<string, unknown>) => unknown,
  { properties = {}, optional = [], mcp = false, pair = false }: HostToolOptions = {},
): HostTool {
  const inputs: Record<string, unknown>[] = [];
  let underWay = 0;
  let peak = 0;
  const parameters = {
    type: "object",
    properties: Object.fromEntries(Object.entries(properties).map(([key, type]) => [key, { type }])),
    required: Object.keys(properties).filter((key) => !optional.includes(key)),
  };
  const noting = async (input: Record<string, unknown>) => {
    inputs.push(input);
    peak = Math.max(peak, ++underWay);
    try {
      return await answer(input);
    } finally {
      underWay--;
    }
  };
  const description = `The tool ${name} of a test; it's """harmless""".`;
  const format = pair ? { responseFormat: "content_and_artifact" as const } : {};
  const instance = tool(noting, { name, description, schema: parameters, ...format });
  if (mcp) instance.mcp = true;
  return {
    instance,
    definition: {
      name,
      description,
      allowed_callers: ["code_execution"],
      ...(Object.keys(properties).length === 0 ? {} : { parameters }),
      ...(mcp ? { toolType: "mcp", serverName: "a-server" } : {}),
    },
    inputs,
    peak: () => peak,
  };
}
