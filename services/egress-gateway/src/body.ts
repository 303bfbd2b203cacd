/**
 * Reads a request body of limited size as JSON. What is announced or turns out larger is not read to its end; what is
 * deeper or holds more values than `bounds` is not parsed.
 */
import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { exceededJsonBound, type JsonBounds, ServiceError } from "@svc/contracts";
import type { FastifyRequest } from "@svc/service-kit";

/** A body of which nothing more comes for so long is given up. */
const SILENT_MS = 30_000;

export interface JsonBody {
  /** As it came. */
  bytes: Buffer;
  value: unknown;
}

/** The body of a request whose content is not parsed by the server; `tooLarge` is thrown above `limit` bytes. */
export async function readJson(
  request: FastifyRequest,
  limit: number,
  bounds: JsonBounds,
  tooLarge: () => ServiceError,
): Promise<JsonBody> {
  if (Number(request.headers["content-length"] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  const body = (request.body as Readable | undefined) ?? request.raw;
  request.raw.setTimeout(SILENT_MS);
  // Who sends too much shall read why, so the connection stays.
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > limit) throw tooLarge();
    chunks.push(chunk);
  }
  // The answer may be long in coming.
  request.raw.setTimeout(0);
  const bytes = Buffer.concat(chunks);
  if (exceededJsonBound(bytes, bounds) !== undefined) throw tooLarge();
  try {
    if (!isUtf8(bytes)) throw new SyntaxError("not UTF-8");
    return { bytes, value: JSON.parse(bytes.toString("utf8")) };
  } catch {
    throw new ServiceError("invalid_json");
  }
}
