/** Answers of the service, with files that can be read. */
import type {
  ExecResponse,
  ProgrammaticResponse,
  ToolCallRequired,
  UploadResponse,
} from "./api.generated.ts";
import { ConnectionLostError } from "./error.ts";
import type { CallOptions, Http } from "./http.ts";

/** Reads the bytes of a stored file. */
export interface Readable {
  download: (options?: CallOptions) => Promise<Uint8Array>;
  text: (options?: CallOptions) => Promise<string>;
  /** For files that do not fit into memory. */
  stream: (options?: CallOptions) => Promise<ReadableStream<Uint8Array>>;
}

export type ResultFile = ExecResponse["files"][number] & Readable;
export type UploadedFile = UploadResponse["files"][number] & Readable;
export type Result = Omit<ExecResponse, "files"> & { files: ResultFile[] };

type Ended = Exclude<ProgrammaticResponse, ToolCallRequired>;
type WithFiles<Answer> = Answer extends { files: unknown }
  ? Omit<Answer, "files"> & { files: ResultFile[] }
  : never;
/** How a program that calls tools ended. */
export type ToolResult = WithFiles<Ended>;

export function withFiles<
  File extends { id: string; storage_session_id: string },
  Answer extends { files: File[] },
>(answer: Answer, http: Http): Omit<Answer, "files"> & { files: (File & Readable)[] } {
  return { ...answer, files: answer.files.map((file) => ({ ...file, ...readable(file, http) })) };
}

function readable(
  { id, storage_session_id }: { id: string; storage_session_id: string },
  http: Http,
): Readable {
  const path = `/download/${storage_session_id}/${id}`;
  const get = (options: CallOptions = {}) => http.send({ method: "GET", path, ...options });
  const read = async <T>(
    options: CallOptions | undefined,
    body: (response: Response) => Promise<T>,
  ): Promise<T> => {
    const response = await get(options);
    try {
      return await body(response);
    } catch (cause) {
      options?.signal?.throwIfAborted();
      throw new ConnectionLostError(cause);
    }
  };
  return {
    download: (options) => read(options, async (response) => new Uint8Array(await response.arrayBuffer())),
    text: (options) => read(options, (response) => response.text()),
    stream: async (options) =>
      (await get(options)).body ?? new ReadableStream({ start: (one) => one.close() }),
  };
}
