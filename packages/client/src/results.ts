/** Responses of the service, with files that can be read. */
import type {
  ExecResponse,
  ProgrammaticResponse,
  ToolCallRequired,
  UploadResponse,
} from "./api.generated.ts";
import { ConnectionFailedError, ConnectionLostError } from "./error.ts";
import type { CallOptions, Http } from "./http.ts";

/** Reads the bytes of a stored file. */
export interface Readable {
  download: (options?: CallOptions) => Promise<Uint8Array>;
  text: (options?: CallOptions) => Promise<string>;
  /** For files that do not fit into memory. */
  stream: (options?: CallOptions) => Promise<ReadableStream<Uint8Array>>;
}

export type ResultFile = ExecResponse["files"][number] & Readable;
/** The owner of a file that does not belong to the caller. */
interface Owner {
  kind?: "user" | "agent" | "skill" | undefined;
  resource_id?: string | undefined;
  version?: number | undefined;
}

export type UploadedFile = UploadResponse["files"][number] & Owner & Readable;
export type Result = Omit<ExecResponse, "files"> & { files: ResultFile[] };

type Ended = Exclude<ProgrammaticResponse, ToolCallRequired>;
type WithFiles<Answer> = Answer extends { files: unknown }
  ? Omit<Answer, "files"> & { files: ResultFile[] }
  : never;
/** How a program that calls tools ended. */
export type ToolResult = WithFiles<Ended>;

/** The fields that locate a stored file. Files of agents and skills are located by their owner, too. */
interface Stored extends Owner {
  id: string;
  storage_session_id: string;
  /** Bytes. */
  size: number;
}

export function withFiles<File extends Stored, Answer extends { files: File[] }>(
  answer: Answer,
  http: Http,
): Omit<Answer, "files"> & { files: (File & Readable)[] } {
  return { ...answer, files: answer.files.map((file) => ({ ...file, ...readable(file, http) })) };
}

function readable(file: Stored, http: Http): Readable {
  const get = (options: CallOptions = {}) => http.send({ method: "GET", path: pathOf(file), ...options });
  const download = async (options?: CallOptions): Promise<Uint8Array> => {
    const response = await get(options);
    let bytes: Uint8Array;
    try {
      bytes = new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      options?.signal?.throwIfAborted();
      throw new ConnectionLostError(cause);
    }
    if (bytes.length === file.size) return bytes;
    const { status } = response;
    throw new ConnectionFailedError(`The answer has ${bytes.length} bytes, and the file ${file.size}.`, {
      status,
    });
  };
  return {
    download,
    text: async (options) => new TextDecoder().decode(await download(options)),
    stream: async (options) =>
      (await get(options)).body ?? new ReadableStream({ start: (one) => one.close() }),
  };
}

function pathOf({ id, storage_session_id, kind = "user", resource_id, version }: Stored): string {
  const path = `/download/${storage_session_id}/${id}`;
  if (kind === "user") return path;
  const owner = { kind, id: resource_id ?? "", ...(version === undefined ? {} : { version: `${version}` }) };
  return `${path}?${new URLSearchParams(owner)}`;
}
