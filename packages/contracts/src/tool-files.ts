/**
 * The files that describe the tools to a program's prelude: tools.json for Python, tools.tsv for Bash. The runner puts them
 * next to the tool socket. Names, descriptions and schemas travel as data. A shell defines functions only from identifiers,
 * which hold nothing but letters, digits and underscores. The tools must have passed findToolCollision. Pure.
 */
import { type ProgrammaticLanguage, sharesCommandName, toolIdentifier } from "./tool-identifiers.ts";

export interface ToolDefinition {
  name: string;
  description?: string | undefined;
  /** The caller's JSON schema, unchecked. */
  parameters?: unknown;
}

/** The files by name. `maxBytes`: largest size of one call, with name and arguments as sent. */
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

/** One line per tool with three fields: identifier; 1 if a builtin or command has the same name, else 0; the tool's index. */
function toolsTable(tools: readonly ToolDefinition[]): string {
  return tools
    .map(({ name }, index) => {
      const identifier = toolIdentifier(name, "bash");
      return `${identifier}\t${sharesCommandName(identifier) ? 1 : 0}\t${index}\n`;
    })
    .join("");
}
