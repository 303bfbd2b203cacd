/** What the MCP server needs of the service: its public API, seen by one caller. */
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

/** Every call ends early when its signal is aborted, which cancels a run. A refusal is thrown as ServiceRefusal. */
export interface Service {
  /** `onOutput` is called with output while it comes. */
  run: (program: Program, signal: AbortSignal, onOutput: OnOutput) => Promise<Result>;
  upload: (name: string, content: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<DescribedFile>;
  /** Refuses what has more bytes. */
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
  /** Of the error table; undefined where the service gave no answer of its own. */
  readonly code: string | undefined;

  constructor(message: string, code?: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
