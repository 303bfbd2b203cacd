/**
 * Answers GET and HEAD of an object: headers, conditions, ranges, then the bytes with back-pressure. A failure before the first bytes gets an
 * error answer; a later one cuts the connection.
 */
import { once } from "node:events";
import type { Readable } from "node:stream";
import { type ObjectRecord, ORIGINAL_FILENAME_HEADER, READ_ONLY_HEADER, ServiceError } from "@svc/contracts";
import type { OpenObject } from "@svc/object-store";
import type { FastifyReply, FastifyRequest } from "@svc/service-kit";
import { answerFor, quoted } from "./conditions.ts";
import { attachment } from "./content-disposition.ts";
import { stored } from "./storage.ts";

export async function sendObject(
  object: OpenObject,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { record } = object;
  const answer = answerFor(request.method, request.headers, record);
  if (answer.status === 416) {
    await object.close();
    throw new ServiceError("range_not_satisfiable", undefined, {
      headers: { "content-range": `bytes */${record.size}` },
    });
  }
  const range = answer.status === 206 ? answer.range : undefined;
  const hasBytes = answer.status !== 304 && request.method !== "HEAD";
  const bytes = hasBytes ? await begun(object.read(range)) : undefined;
  if (bytes === undefined) await object.close();
  reply.code(answer.status).headers(validatorHeaders(record));
  if (answer.status === 304) return reply.send();
  reply.headers(contentHeaders(record)).header("content-length", record.size);
  if (range !== undefined) {
    const { first, last } = range;
    reply.header("content-range", `bytes ${first}-${last}/${record.size}`);
    reply.header("content-length", last - first + 1);
  }
  return reply.send(bytes);
}

/** Waits until the first bytes of the stream are available. */
async function begun(bytes: Readable): Promise<Readable> {
  await stored(() => once(bytes, "readable"));
  return bytes;
}

function validatorHeaders(record: ObjectRecord): Record<string, string> {
  return {
    etag: quoted(record.etag),
    "last-modified": new Date(record.lastModified).toUTCString(),
    "cache-control": "private, no-cache",
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    ...(record.readOnly ? { [READ_ONLY_HEADER]: "true" } : {}),
  };
}

function contentHeaders(record: ObjectRecord): Record<string, string> {
  return {
    "content-type": record.contentType,
    "content-disposition": attachment(record.filename),
    [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(record.filename),
  };
}
