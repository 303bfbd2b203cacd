/** Inputs of a program: the form that callers write, and the form that the service takes. */
import type { ExecRequestInput, ProgrammaticStartInput } from "./api.generated.ts";

/** A stored file: an upload, a file of a result, or an object with these fields. Other fields are not sent. */
export interface StoredFile {
  id: string;
  storage_session_id: string;
  /** Its path under /mnt/data. */
  name: string;
  kind?: string | undefined;
  resource_id?: string | undefined;
  version?: number | undefined;
  entity_id?: string | undefined;
}

/** A file that is sent with the request: at most 1 MiB each, 4 MiB together. */
export interface InlineFile {
  name: string;
  content: string | Uint8Array;
}

export type InputFile = StoredFile | InlineFile;

type ProgramFields = Omit<ExecRequestInput, "files" | "lang" | "language">;

/** A program: the fields of POST /v1/exec, with files as they come from this client. */
export interface Program extends ProgramFields {
  /** Any name or alias of GET /v1/languages. */
  language: string;
  files?: readonly InputFile[];
}

type ToolProgramFields = Omit<ProgrammaticStartInput, "files" | "tools" | "lang" | "language">;

/** A program that calls tools: Python, or Bash. */
export interface ToolProgram extends ToolProgramFields {
  language?: "python" | "bash";
  files?: readonly InputFile[];
}

export const bodyOf = ({ files, ...fields }: Program | ToolProgram, more: object = {}): string =>
  JSON.stringify({ ...fields, ...(files === undefined ? {} : { files: files.map(fileOf) }), ...more });

function fileOf(file: InputFile): object {
  if ("content" in file) {
    const { name, content } = file;
    return typeof content === "string"
      ? { name, content }
      : { name, content: base64(content), encoding: "base64" };
  }
  const { id, storage_session_id, name, kind, resource_id, version, entity_id } = file;
  return { id, storage_session_id, name, kind, resource_id, version, entity_id };
}

/** Bytes per call. Each byte is an argument, and more of them may not fit on a stack. */
const PIECE = 0x8000;

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE)
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return btoa(text);
}
