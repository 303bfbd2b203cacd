/** Writes one output file into the grant's only writable session. The exact length is known before the body is read. */
import type { Readable } from "node:stream";
import type { Grant, SessionHandle, Upload } from "@svc/capabilities";
import {
  fileNameProblem,
  ID_TAKEN,
  isId,
  NAMESPACE_HEADER,
  newId,
  ORIGINAL_FILENAME_HEADER,
  ServiceError,
  snapshotNamespaceOf,
  type UploadedFile,
} from "@svc/contracts";
import {
  answerBytes,
  type Config,
  errorText,
  type FastifyRequest,
  type InnerClient,
  type InnerRequest,
  type InnerResponse,
  innerError,
} from "@svc/service-kit";
import type { Admission } from "./admission.ts";
import { ledgerRefused } from "./refusals.ts";

export interface WrittenFile {
  fileId: string;
  filename: string;
  size: number;
  etag: string;
  lastModified: string;
}

/** What a write asks for, from its path and headers alone. */
export interface WriteRequest extends Upload {
  session: SessionHandle;
  filename: string;
}

/** Reads path and headers; the body stays unread. */
export function writeRequest(
  config: Config,
  grant: Grant,
  session: SessionHandle,
  request: FastifyRequest,
): WriteRequest {
  const { fileId } = request.params as { fileId: string };
  if (!isId(fileId)) throw new ServiceError("invalid_id");
  const limit =
    fileId === grant.snapshot_object_id
      ? config.SVC_SESSION_STATE_MAX_BYTES
      : config.EGRESS_GATEWAY_MAX_FILE_BYTES;
  const bytes = contentLength(request, limit);
  return { session, fileId, bytes, attempt: newId(), filename: originalFilename(request, config) };
}

/**
 * Stores the body and settles its reservation with the real size. The reservation is released when the file is certainly not stored. In doubt it
 * stays, so that nothing is ever stored without being charged.
 */
export async function writeObject(
  admission: Admission,
  fileServer: InnerClient,
  grant: Grant,
  write: WriteRequest,
  request: FastifyRequest,
  timeoutMs: number,
): Promise<WrittenFile> {
  const { fileId, filename } = write;
  let answer: UploadedFile | ServiceError;
  const failed = () =>
    admission.refund(grant, write).catch((failure: Error) => {
      request.log.error(
        { request_id: request.id, err: errorText(failure) },
        "refunding a failed upload failed; it stays charged",
      );
    });
  try {
    answer = await fileServer.whole<UploadedFile | ServiceError>(
      putOf(grant, write, request, timeoutMs),
      (response) => (response.statusCode === 200 ? storedFile(response) : innerError(response)),
    );
  } catch (error) {
    if (neverArrived(error, request)) await failed();
    else noteUnknown(request);
    throw error;
  }
  if (answer instanceof ServiceError) {
    // Storage that reports a failure may have stored the file all the same.
    if (answer.code === "storage_unavailable") noteUnknown(request);
    else await failed();
    throw isTaken(answer) ? ledgerRefused("file_id_reused") : answer;
  }
  const { size, etag, lastModified } = answer;
  await admission.settle(grant, write, size);
  return { fileId, filename, size, etag, lastModified };
}

function noteUnknown(request: FastifyRequest): void {
  request.log.warn({ request_id: request.id }, "upload outcome unknown; it stays charged");
}

function putOf(
  grant: Grant,
  { session, fileId, bytes, filename }: WriteRequest,
  request: FastifyRequest,
  timeoutMs: number,
): InnerRequest {
  return {
    method: "PUT",
    timeoutMs,
    path: `/sessions/${session.session_id}/objects/${fileId}`,
    requestId: request.id,
    headers: {
      "content-type": request.headers["content-type"] ?? "application/octet-stream",
      "content-length": String(bytes),
      [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(filename),
      [NAMESPACE_HEADER]:
        fileId === grant.snapshot_object_id ? snapshotNamespaceOf(grant.session_key) : grant.session_key,
    },
    body: bytes === 0 ? "" : ((request.body as Readable | undefined) ?? request.raw),
  };
}

const NOT_CONNECTED: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** True when the file server cannot have received the whole body; it stores only whole bodies. */
function neverArrived(error: unknown, request: FastifyRequest): boolean {
  const { cause } = error as { cause?: { code?: unknown } };
  return NOT_CONNECTED.has(cause?.code) || !request.raw.complete;
}

const isTaken = ({ details = [] }: ServiceError) =>
  details.some(({ path, problem }) => path === ID_TAKEN.path && problem === ID_TAKEN.problem);

async function storedFile(answer: InnerResponse): Promise<UploadedFile> {
  try {
    return JSON.parse((await answerBytes(answer)).toString("utf8")) as UploadedFile;
  } catch (cause) {
    throw new ServiceError("storage_unavailable", undefined, { cause });
  }
}

function contentLength(request: FastifyRequest, limit: number): number {
  const text = request.headers["content-length"];
  if (text === undefined || !/^\d{1,15}$/.test(text)) throw new ServiceError("length_required");
  if (Number(text) > limit)
    throw new ServiceError("file_too_large", `An output file may have ${limit} bytes.`);
  return Number(text);
}

function originalFilename(request: FastifyRequest, config: Config): string {
  const encoded = request.headers[ORIGINAL_FILENAME_HEADER];
  if (typeof encoded !== "string")
    throw new ServiceError("missing_headers", "X-Original-Filename is required.");
  let name: string;
  try {
    name = decodeURIComponent(encoded);
  } catch {
    throw new ServiceError("invalid_file_name", "X-Original-Filename must be percent-encoded UTF-8.");
  }
  const problem = fileNameProblem(name, {
    maxLength: config.EGRESS_GATEWAY_MAX_PATH_LENGTH,
    maxDepth: config.EGRESS_GATEWAY_MAX_NESTING_DEPTH,
  });
  if (problem !== undefined) throw new ServiceError("invalid_file_name", `The file name ${problem}.`);
  return name;
}
