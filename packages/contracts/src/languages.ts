/**
 * The languages of the public interface: their names, aliases, entry files and queues.
 * `runner` is the name in runner requests and in answers. Only the runner knows which languages are installed.
 */
export type QueueKind = "python" | "other";

export interface Language {
  lang: string;
  aliases: readonly string[];
  runner: string;
  entry: string;
  compiled: boolean;
  queue: QueueKind;
}

const language = (
  lang: string,
  aliases: readonly string[],
  runner: string,
  entry: string,
  compiled = false,
): Language => ({ lang, aliases, runner, entry, compiled, queue: runner === "python" ? "python" : "other" });

export const LANGUAGES: readonly Language[] = [
  language("py", ["python", "python3", "py3"], "python", "main.py"),
  language("bash", ["sh", "shell"], "bash", "script.sh"),
  language("js", ["javascript", "mjs", "bun", "bun-js"], "javascript", "index.js"),
  language("ts", ["typescript", "bun-ts", "bun-typescript"], "typescript", "main.ts"),
  language("node", ["nodejs", "node-js", "node-javascript"], "node", "index.js"),
  language("c", ["gcc"], "c", "main.c", true),
  language("cpp", ["c++", "cxx", "g++"], "cpp", "main.cpp", true),
  language("java", ["jdk", "openjdk"], "java", "Main.java", true),
  language("php", [], "php", "main.php"),
  language("rs", ["rust"], "rust", "main.rs", true),
  language("go", ["golang"], "go", "main.go", true),
  language("d", ["dlang"], "d", "main.d", true),
  language("f90", ["fortran", "f95", "f03", "f08"], "fortran", "main.f90", true),
  language("r", ["rlang", "rscript"], "r", "main.R"),
];

const BY_NAME = new Map<string, Language>();
for (const entry of LANGUAGES) {
  for (const name of [entry.lang, entry.runner, ...entry.aliases]) BY_NAME.set(name, entry);
}

/** Finds a language by any of its names, in any case. */
export function findLanguage(name: string): Language | undefined {
  return BY_NAME.get(name.toLowerCase());
}

/** The queues that programs in these languages (runner names) go through. */
export function queueKindsOf(languages: readonly string[]): QueueKind[] {
  return [...new Set(languages.flatMap((name) => findLanguage(name)?.queue ?? []))];
}

const ALWAYS_INSTALLED = new Set(["python", "bash", "javascript", "typescript", "node"]);

/** The command that installs a missing language and keeps the installed ones (runner names). Undefined for an unknown language. */
export function installHint(name: string, installed: readonly string[]): string | undefined {
  const language = findLanguage(name);
  if (language === undefined) return undefined;
  const chosen = LANGUAGES.filter(
    ({ runner }) =>
      runner === language.runner || (installed.includes(runner) && !ALWAYS_INSTALLED.has(runner)),
  );
  return `./svc up --languages ${chosen.map(({ lang }) => lang).join(",")} adds ${language.runner}`;
}
