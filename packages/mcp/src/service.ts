/** The part of the service's public API that the MCP server uses, on behalf of one caller. */
import type { LanguageInfo, OutputStream } from "@svc/contracts";
import type { Result } from "svc-client";

/** A file that the service keeps; `session_id`: its storage session. */
export interface StoredFile {
  id: string;
  session_id: string;
  name: string;
}

export interface DescribedFile extends StoredFile {
  size: number;
  content_type: string;
}

export interface InlineFile {
  name: string;
  content: string;
  encoding?: "utf8" | "base64" | undefined;
}

export interface Program {
  language: string;
  code: string;
  files?: readonly (StoredFile | InlineFile)[] | undefined;
  args?: readonly string[] | undefined;
  stdin?: string | undefined;
  timeout_ms?: number | undefined;
  session?: string | undefined;
}

export interface KeptSession {
  id: string;
  /** Absent for the caller's default session. */
  hint?: string;
}

export interface SessionFile {
  /** Path under /mnt/data. */
  name: string;
  /** Bytes. */
  size: number;
}

export type OnOutput = (stream: OutputStream, text: string) => void;

/** Aborting the signal of a call ends the call early, and cancels its run. A refusal is thrown as ServiceRefusal. */
export interface Service {
  /** Calls `onOutput` with output as it arrives. */
  run: (program: Program, signal: AbortSignal, onOutput: OnOutput) => Promise<Result>;
  upload: (name: string, content: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<DescribedFile>;
  /** Refuses a file of more than `maxBytes`. */
  download: (
    file: Pick<StoredFile, "id" | "session_id">,
    maxBytes: number,
    signal: AbortSignal,
  ) => Promise<Uint8Array>;
  filesOf: (storageSession: string, signal: AbortSignal) => Promise<DescribedFile[]>;
  /** Empty where the service keeps no sessions. */
  sessions: (signal: AbortSignal) => Promise<KeptSession[]>;
  sessionFiles: (sessionId: string, signal: AbortSignal) => Promise<SessionFile[]>;
  sessionFile: (
    sessionId: string,
    name: string,
    maxBytes: number,
    signal: AbortSignal,
  ) => Promise<Uint8Array>;
  languages: (signal: AbortSignal) => Promise<LanguageInfo[]>;
}

/** The service refused a call or could not be reached; `message` is a sentence for the caller. */
export class ServiceRefusal extends Error {
  /** A code of the error table, or the client's `connection_failed`. Undefined where neither gave a code. */
  readonly code: string | undefined;

  constructor(message: string, code?: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
