/** Writes one output file of the one writable session. The length is known before the body is read, and is exact. */
import type { Readable } from "node:stream";
import type { Grant, SessionHandle, Upload } from "@svc/capabilities";
import {
  fileNameProblem,
  isId,
  NAMESPACE_HEADER,
  ORIGINAL_FILENAME_HEADER,
  ServiceError,
  type UploadedFile,
} from "@svc/contracts";
import type { Config, FastifyRequest, InnerClient } from "@svc/service-kit";
import type { Admission } from "./admission.ts";

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
export function writeRequest(config: Config, session: SessionHandle, request: FastifyRequest): WriteRequest {
  const { fileId } = request.params as { fileId: string };
  if (!isId(fileId)) throw new ServiceError("invalid_id");
  const bytes = contentLength(request, config.EGRESS_GATEWAY_MAX_FILE_BYTES);
  return { session, fileId, bytes, filename: originalFilename(request, config) };
}

/** Stores the body. What was set aside for it is settled with the real size, and given back when it cannot be stored. */
export async function writeObject(
  admission: Admission,
  fileServer: InnerClient,
  grant: Grant,
  write: WriteRequest,
  request: FastifyRequest,
): Promise<WrittenFile> {
  const { session, fileId, bytes, filename } = write;
  let stored: UploadedFile;
  try {
    stored = await fileServer.json<UploadedFile>({
      method: "PUT",
      path: `/sessions/${session.session_id}/objects/${fileId}`,
      requestId: request.id,
      headers: {
        "content-type": request.headers["content-type"] ?? "application/octet-stream",
        "content-length": String(bytes),
        [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(filename),
        [NAMESPACE_HEADER]: grant.session_key,
      },
      body: bytes === 0 ? "" : ((request.body as Readable | undefined) ?? request.raw),
    });
  } catch (error) {
    await admission.refund(grant, write).catch((failure: Error) => {
      request.log.error({ request_id: request.id, err: failure.message }, "a failed upload stays charged");
    });
    throw error;
  }
  await admission.settle(grant, write, stored.size);
  return { fileId, filename, size: stored.size, etag: stored.etag, lastModified: stored.lastModified };
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
