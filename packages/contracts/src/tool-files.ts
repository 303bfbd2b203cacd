/**
 * The files that tell a program's prelude its tools, by file name: tools.json for Python, tools.tsv for Bash. Pure.
 *
 * The runner puts them beside the socket of its tool calls. Names, descriptions and schemas travel as data; the only
 * text that a shell ever defines a function by is an identifier, which holds nothing but letters, digits and underscores.
 * The tools must have passed findToolCollision.
 */
import { type ProgrammaticLanguage, sharesCommandName, toolIdentifier } from "./tool-identifiers.ts";

export interface ToolDefinition {
  name: string;
  description?: string | undefined;
  /** Any JSON schema, as the caller gave it. */
  parameters?: unknown;
}

/** `maxBytes`: what one call may hold, name and arguments as sent. */
export function toolFiles(
  language: ProgrammaticLanguage,
  tools: readonly ToolDefinition[],
  maxBytes: number,
): Record<string, string> {
  return language === "python"
    ? { "tools.json": toolsJson(tools, maxBytes) }
    : { "tools.tsv": toolsTable(tools) };
}

function toolsJson(tools: readonly ToolDefinition[], maxBytes: number): string {
  return JSON.stringify({
    version: 1,
    language: "python",
    max_bytes: maxBytes,
    tools: tools.map(({ name, description, parameters }) => ({
      name,
      identifier: toolIdentifier(name, "python"),
      description: description ?? "",
      parameters: parameters ?? null,
    })),
  });
}

/** One line per tool: identifier, 1 if a builtin or command has the same name, else 0, and the tool's position. */
function toolsTable(tools: readonly ToolDefinition[]): string {
  return tools
    .map(({ name }, index) => {
      const identifier = toolIdentifier(name, "bash");
      return `${identifier}\t${sharesCommandName(identifier) ? 1 : 0}\t${index}\n`;
    })
    .join("");
}
