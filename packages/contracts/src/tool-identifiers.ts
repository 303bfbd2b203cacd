/**
 * The names under which a program reaches its tools: the one place that makes identifiers from tool names.
 *
 * Guarantees that every identifier is made of A-Z a-z 0-9 _ alone, does not begin with a digit, and is never a word that the language
 * keeps for itself; so it may stand in a program's name space, or be defined as a shell function, without quoting. Pure.
 */
import { SHELL_COMMANDS, SHELL_FRAME_BUILTINS, SHELL_KEYWORDS } from "./shell-names.ts";

export type ProgrammaticLanguage = "python" | "bash";

/** Keywords, and what every module carries; the latter are never hidden by a tool. */
const PYTHON_RESERVED: ReadonlySet<string> = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if
  import in is lambda nonlocal not or pass raise return try while with yield
  __annotations__ __builtins__ __cached__ __debug__ __doc__ __file__ __loader__ __name__ __package__ __spec__`.split(
    /\s+/,
  ),
);

const plain = (name: string, joined: RegExp): string => {
  const kept = name.replace(joined, "_").replace(/[^A-Za-z0-9_]/g, "");
  if (kept === "") return "tool";
  return /^[0-9]/.test(kept) ? `_${kept}` : kept;
};

function pythonIdentifier(name: string): string {
  const identifier = plain(name, /[-\s]/g);
  return PYTHON_RESERVED.has(identifier) ? `${identifier}_tool` : identifier;
}

function bashIdentifier(name: string): string {
  const identifier = plain(name, /[-\s.]/g);
  const reserved = SHELL_KEYWORDS.has(identifier) || SHELL_FRAME_BUILTINS.has(identifier);
  return reserved ? `${identifier}_tool` : identifier;
}

/** The name a program calls the tool by. */
export function toolIdentifier(name: string, language: ProgrammaticLanguage): string {
  return language === "python" ? pythonIdentifier(name) : bashIdentifier(name);
}

/** True when a Bash tool shares its name with a builtin or command: it exists as `<identifier>_tool` as well. */
export function sharesCommandName(identifier: string): boolean {
  return SHELL_COMMANDS.has(identifier);
}

/** Every name that a tool takes. */
export function toolNames(name: string, language: ProgrammaticLanguage): string[] {
  const identifier = toolIdentifier(name, language);
  return language === "bash" && sharesCommandName(identifier)
    ? [identifier, `${identifier}_tool`]
    : [identifier];
}

export interface ToolCollision {
  /** Positions of the two tools, the smaller first. */
  first: number;
  second: number;
  identifier: string;
}

/** The first two tools that one identifier would reach, or undefined when every tool has names of its own. */
export function findToolCollision(
  names: readonly string[],
  language: ProgrammaticLanguage,
): ToolCollision | undefined {
  const taken = new Map<string, number>();
  for (const [second, name] of names.entries()) {
    for (const identifier of toolNames(name, language)) {
      const first = taken.get(identifier);
      if (first !== undefined) return { first, second, identifier };
      taken.set(identifier, second);
    }
  }
  return undefined;
}
