/** The language of a program that does not name it. Pure. */
import { extname } from "node:path";
import { type Program, STANDARD_INPUT } from "./program.ts";

const DEFAULT = "py";

const BY_EXTENSION: Readonly<Record<string, string>> = {
  ".py": "py",
  ".sh": "bash",
  ".bash": "bash",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".ts": "ts",
  ".mts": "ts",
  ".c": "c",
  ".cc": "cpp",
  ".cpp": "cpp",
  ".cxx": "cpp",
  ".java": "java",
  ".php": "php",
  ".rs": "rs",
  ".go": "go",
  ".d": "d",
  ".f90": "f90",
  ".r": "r",
};

/** Chosen by the extension of the file. Code without a file is Python. */
export function languageOf(program: Program): string | undefined {
  if ("code" in program || program.path === STANDARD_INPUT) return DEFAULT;
  return BY_EXTENSION[extname(program.path).toLowerCase()];
}
