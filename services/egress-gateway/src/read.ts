/**
 * Reads an authorised object: streams the file server's bytes and headers. A failure cuts the connection. A reader that sends the entity tag of
 * its copy gets 304 without bytes while the object is the same. A reader whose bytes broke off may have them checked first (CHECKED_HEADER).
 */
import { pipeline } from "node:stream/promises";
import type { ObjectHandle } from "@svc/capabilities";
import { CHECKED_HEADER, ServiceError } from "@svc/contracts";
import {
  clientGone,
  errorText,
  type FastifyReply,
  type FastifyRequest,
  type InnerClient,
  innerError,
} from "@svc/service-kit";

const PASSED_HEADERS = [
  "content-type",
  "content-length",
  "etag",
  "last-modified",
  "x-read-only",
  "x-original-filename",
] as const;

const ENTITY_TAG = /^"[0-9a-f]{64}"$/;

export async function readObject(
  fileServer: InnerClient,
  object: ObjectHandle,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const upstream = await fileServer.send({
    method: "GET",
    path: `/sessions/${object.session_id}/objects/${object.object_id}`,
    headers: wishesOf(request),
    requestId: request.id,
    signal: clientGone(reply, new ServiceError("execution_cancelled")),
  });
  if (upstream.statusCode === 304) {
    await upstream.body.dump();
    for (const name of PASSED_HEADERS) {
      const value = upstream.headers[name];
      if (value !== undefined) reply.header(name, value);
    }
    return reply.code(304).send();
  }
  if (upstream.statusCode !== 200) throw await innerError(upstream);
  reply.hijack();
  reply.raw.statusCode = 200;
  reply.raw.setHeader("x-request-id", request.id);
  for (const name of PASSED_HEADERS) {
    const value = upstream.headers[name];
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
  await pipeline(upstream.body, reply.raw).catch((error: Error) => {
    const line = { request_id: request.id, err: errorText(error) };
    if (isDeparture(error)) request.log.info(line, "the reader left");
    else request.log.warn(line, "read aborted");
    reply.raw.destroy();
  });
  return reply;
}

/** True when the reader closed the connection. Any other error comes from the file server or its connection. */
function isDeparture(error: Error & { code?: unknown }): boolean {
  return error.code === "execution_cancelled" || error.code === "ERR_STREAM_PREMATURE_CLOSE";
}

function wishesOf({ headers }: FastifyRequest): Record<string, string> {
  const tag = headers["if-none-match"] ?? "";
  return {
    ...(ENTITY_TAG.test(tag) ? { "if-none-match": tag } : {}),
    ...(headers[CHECKED_HEADER] === "true" ? { [CHECKED_HEADER]: "true" } : {}),
  };
}
