/** The language of a program by the extension of its file. Pure. */
import { extname } from "node:path";

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

export function languageOf(path: string): string | undefined {
  return BY_EXTENSION[extname(path).toLowerCase()];
}
