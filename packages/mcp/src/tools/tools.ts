/** All tools by name. */
import { listFiles } from "./list-files.ts";
import { listLanguages } from "./list-languages.ts";
import { readFile } from "./read-file.ts";
import { runCode } from "./run-code.ts";
import type { Tool } from "./tool.ts";
import { uploadFile } from "./upload-file.ts";

export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  [runCode, uploadFile, listFiles, readFile, listLanguages].map((tool) => [tool.listed.name, tool]),
);
