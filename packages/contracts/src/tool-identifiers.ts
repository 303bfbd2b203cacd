/**
 * Makes the identifiers under which a program calls its tools; nothing else makes them.
 *
 * Guarantees that an identifier consists of A-Z a-z 0-9 _, does not begin with a digit, and is never a reserved word of the language.
 * So it needs no quoting, neither as a name in a program nor as a shell function. Pure.
 */
import { SHELL_COMMANDS, SHELL_FRAME_BUILTINS, SHELL_KEYWORDS } from "./shell-names.ts";

export type ProgrammaticLanguage = "python" | "bash";

/** Keywords, and the names that every module has, which a tool must never hide. */
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

/** Whether a Bash tool has the name of a builtin or command. Such a tool also exists as `<identifier>_tool`. */
export function sharesCommandName(identifier: string): boolean {
  return SHELL_COMMANDS.has(identifier);
}

/** All names that a tool occupies. */
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

/** The first two tools that would share an identifier; undefined when there are none. */
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
