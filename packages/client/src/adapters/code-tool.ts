/** A tool for language models that runs a program, independent of any framework. The adapters beside it fit it to their frameworks. */
import { CONNECTION_FAILED, SvcError } from "../error.ts";
import { CODES } from "../errors.generated.ts";
import type { InputFile } from "../inputs.ts";
import type { Result } from "../results.ts";
import type { Svc } from "../svc.ts";

export interface CodeToolOptions {
  /** Description of the tool for the model. The languages, and the names of `files`, are appended. */
  description?: string | undefined;
  /** Languages that the model may choose from. */
  languages?: readonly string[] | undefined;
  /** Every run finds these files in its folder. */
  files?: readonly InputFile[] | undefined;
  /** Hint of a persistent session. Runs with the same hint continue each other, if the service keeps sessions. */
  session?: string | undefined;
}

export interface CodeInput {
  language: string;
  code: string;
}

export interface CodeOutput {
  /** What the model reads of a run: its output, how it ended, its files. For an error of the service it is a sentence. */
  text: string;
  /** For the application, which can download its files. Null if the program was not run, or its result is not known. */
  result: Result | null;
}

export interface CodeTool {
  description: string;
  /** JSON Schema of the input. */
  schema: {
    type: "object";
    properties: Record<string, object>;
    required: string[];
    additionalProperties: false;
  };
  /** Rejects only when `signal` is aborted, with its reason. `input` may violate the schema, because a model wrote it. */
  run: (input: CodeInput, signal?: AbortSignal) => Promise<CodeOutput>;
}

const DESCRIPTION =
  "Runs a program in a sandbox without network and returns what it prints. Files that it writes into the current folder are kept.";

export function codeTool(svc: Svc, options: CodeToolOptions = {}): CodeTool {
  const { description = DESCRIPTION, languages = ["python", "javascript", "bash"], files = [] } = options;
  const session = options.session === undefined ? {} : { runtime_session_hint: options.session };
  const given =
    files.length === 0 ? "" : ` Files that are there: ${files.map(({ name }) => name).join(", ")}.`;
  return {
    description: `${description} Languages: ${languages.join(", ")}.${given}`,
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
      if (!languages.includes(language)) return notRun(`The languages are ${languages.join(", ")}.`);
      try {
        const result = await svc.run({ language, code, files, ...session }, { signal });
        return { text: textOf(result), result };
      } catch (error) {
        signal?.throwIfAborted();
        const why = error instanceof Error ? error.message : String(error);
        return isRefusal(error) ? notRun(why) : { text: `The result is not known: ${why}`, result: null };
      }
    },
  };
}

/** Whether the error says that the program has not run. Any other error leaves that open. */
const isRefusal = (error: unknown): boolean =>
  error instanceof SvcError &&
  ![CONNECTION_FAILED, "execution_cancelled"].includes(error.code) &&
  (Math.floor(error.status / 100) === 4 || CODES[error.code]?.repeat === "same");

const notRun = (why: string): CodeOutput => ({ text: `The program was not run: ${why}`, result: null });

function textOf({ stdout, stderr, code, message, files }: Result): string {
  const parts = [stdout];
  if (stderr !== "") parts.push(`stderr:\n${stderr}`);
  if (code !== 0) parts.push(`exit code ${code}${message === null ? "" : `: ${message}`}`);
  const made = files.filter((file) => !("inherited" in file && file.inherited)).map((file) => file.name);
  if (made.length > 0) parts.push(`files: ${made.join(", ")}`);
  return parts.filter((part) => part !== "").join("\n") || "(no output)";
}
