/** `run_code`: runs one program. Shows its output while it runs, and returns what it left. */
import { LANGUAGES } from "@svc/contracts";
import { z } from "zod";
import { contentOf } from "../run-content.ts";
import { encoding, fileName, storedFile } from "./fields.ts";
import { defineTool } from "./tool.ts";

const NAMES = LANGUAGES.map(({ lang, runner }) => (lang === runner ? lang : `${lang} (${runner})`)).join(
  ", ",
);

const inlineFile = z.object({
  name: fileName,
  content: z.string().describe("At most 1 MiB; 4 MiB for all files with content."),
  encoding: encoding.optional(),
});

const input = z.object({
  language: z
    .string()
    .describe(`Language of the program: ${NAMES}. list_languages tells which are installed.`),
  code: z.string().describe("The program. What it prints is the result."),
  files: z
    .array(z.union([storedFile, inlineFile]))
    .optional()
    .describe(
      "Input files in the working directory /mnt/data: stored ones by id, session_id and name, or new ones by name and content.",
    ),
  args: z.array(z.string()).optional().describe("Arguments of the program."),
  stdin: z.string().optional().describe("Standard input of the program."),
  timeout_ms: z.int().min(1).optional().describe("Time limit of the run in ms; 60000 where it is absent."),
  session: z
    .string()
    .optional()
    .describe(
      "Name of a session, such as notebook-1. A later run with the same name finds the files of this one and, in Python, its variables, where the service keeps sessions.",
    ),
});

export const runCode = defineTool({
  name: "run_code",
  title: "Run code",
  description:
    "Runs a program in a sandbox without network and returns what it printed. Files that it writes to its working directory are returned, too: pictures (PNG, JPEG, GIF, WebP) as images, others as links. A run starts with an empty directory, or, where the service keeps sessions, with what the run before in its session left.",
  input,
  isReadOnly: false,
  run: async (program, { service, signal, onOutput }) => {
    const answer = await service.run(program, signal, (_stream, text) => onOutput(text));
    return { content: await contentOf(answer, service, signal), isError: false };
  },
});
