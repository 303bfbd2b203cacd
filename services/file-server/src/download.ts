/** Answers GET and HEAD of an object: headers, conditions, ranges, then the bytes with back-pressure. A fault cuts the connection. */
import { type ObjectRecord, ORIGINAL_FILENAME_HEADER, READ_ONLY_HEADER, ServiceError } from "@svc/contracts";
import type { OpenObject } from "@svc/object-store";
import type { FastifyReply, FastifyRequest } from "@svc/service-kit";
import { answerFor, quoted } from "./conditions.ts";
import { attachment } from "./content-disposition.ts";

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
  reply.code(answer.status).headers(validatorHeaders(record));
  if (answer.status === 304) {
    await object.close();
    return reply.send();
  }
  reply.headers(contentHeaders(record));
  if (answer.status === 206) {
    const { first, last } = answer.range;
    reply.header("content-range", `bytes ${first}-${last}/${record.size}`);
    reply.header("content-length", last - first + 1);
    return reply.send(object.read(answer.range));
  }
  reply.header("content-length", record.size);
  if (request.method === "HEAD") {
    await object.close();
    return reply.send();
  }
  return reply.send(object.read());
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
