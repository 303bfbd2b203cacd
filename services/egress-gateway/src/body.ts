/**
 * Reads a request body as JSON, within limits. A body that announces or turns out to have too many bytes is not read to its end. One that exceeds
 * `bounds` in depth or number of values is not parsed.
 */
import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { exceededJsonBound, type JsonBounds, ServiceError } from "@svc/contracts";
import type { FastifyRequest } from "@svc/service-kit";

/** A body that stalls for this long is given up. */
const SILENT_MS = 30_000;

export interface JsonBody {
  /** As it came. */
  bytes: Buffer;
  value: unknown;
}

/** Reads the body of a request that the server does not parse. Throws `tooLarge` above `limit` bytes or beyond `bounds`. */
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
  // Keeps the connection open, so that a client that sends too much can read why.
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > limit) throw tooLarge();
    chunks.push(chunk);
  }
  // The answer may take long, and no bytes come in the meantime.
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
