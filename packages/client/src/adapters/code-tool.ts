/** A tool for language models that runs a program, in no framework's form. The adapters beside it give it theirs. */
import type { Result } from "../results.ts";
import type { Svc } from "../svc.ts";

export interface CodeToolOptions {
  /** Name under which the model calls it. */
  name?: string | undefined;
  /** What the model is told of it; the languages are added. */
  description?: string | undefined;
  /** Those that the model may choose from. */
  languages?: readonly string[] | undefined;
  /** Runs of the same hint continue each other, where the service keeps sessions. */
  session?: string | undefined;
}

export interface CodeInput {
  language: string;
  code: string;
}

export interface CodeTool {
  name: string;
  description: string;
  /** JSON Schema of the input. */
  schema: {
    type: "object";
    properties: Record<string, object>;
    required: string[];
    additionalProperties: false;
  };
  /** What the model reads of a run: its output, how it ended, its files. An error of the service is a sentence, too. */
  run: (input: CodeInput, signal?: AbortSignal) => Promise<string>;
}

const DESCRIPTION =
  "Runs a program in a sandbox without network and returns what it prints. Files that it writes into the current folder are kept.";

export function codeTool(svc: Svc, options: CodeToolOptions = {}): CodeTool {
  const {
    name = "run_code",
    description = DESCRIPTION,
    languages = ["python", "javascript", "bash"],
  } = options;
  const session = options.session === undefined ? {} : { runtime_session_hint: options.session };
  return {
    name,
    description: `${description} Languages: ${languages.join(", ")}.`,
    schema: {
      type: "object",
      properties: {
        language: { type: "string", enum: [...languages], description: "Language of the program." },
        code: { type: "string", description: "The whole program. Print what is to be seen." },
      },
      required: ["language", "code"],
      additionalProperties: false,
    },
    run: async ({ language, code }, signal) => {
      try {
        return textOf(await svc.run({ language, code, ...session }, { signal }));
      } catch (error) {
        signal?.throwIfAborted();
        return `The program was not run: ${error instanceof Error ? error.message : String(error)}`;
      }
    },
  };
}

function textOf({ stdout, stderr, code, message, files }: Result): string {
  const parts = [stdout];
  if (stderr !== "") parts.push(`stderr:\n${stderr}`);
  if (code !== 0) parts.push(`exit code ${code}${message === null ? "" : `: ${message}`}`);
  const made = files.filter((file) => !("inherited" in file && file.inherited)).map((file) => file.name);
  if (made.length > 0) parts.push(`files: ${made.join(", ")}`);
  return parts.filter((part) => part !== "").join("\n") || "(no output)";
}
