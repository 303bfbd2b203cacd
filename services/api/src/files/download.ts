/**
 * Serves a file: streams the file server's answer with back-pressure and passes on only the listed headers. An upstream failure closes
 * the connection. A client that disconnects or stops reading ends the upstream read.
 */
import { clientGone, type FastifyReply, type FastifyRequest } from "@svc/service-kit";
import type { FileAddress, FileStorage } from "./file-storage.ts";
import { freeWrittenChunks } from "./written-chunks.ts";

const CONDITIONS = ["range", "if-range", "if-none-match", "if-modified-since"] as const;
const SHOWN_HEADERS = [
  "accept-ranges",
  "cache-control",
  "content-disposition",
  "content-length",
  "content-range",
  "content-type",
  "etag",
  "last-modified",
  "x-content-type-options",
  "x-read-only",
] as const;
/** A client that reads no byte for this long is disconnected. */
const STALLED_MS = 120_000;

export async function serveFile(
  storage: FileStorage,
  address: FileAddress,
  namespace: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const method = request.method === "HEAD" ? "HEAD" : "GET";
  const conditions = Object.fromEntries(
    CONDITIONS.flatMap((name) => {
      const value = request.headers[name];
      return value === undefined ? [] : [[name, String(value)]];
    }),
  );
  const upstream = await storage.download(method, address, namespace, conditions, {
    requestId: request.id,
    signal: clientGone(reply, new Error("the client closed the connection")),
  });
  reply.code(upstream.statusCode);
  for (const name of SHOWN_HEADERS) {
    const value = upstream.headers[name];
    if (value !== undefined) reply.header(name, value);
  }
  if (method === "HEAD" || upstream.statusCode === 304) {
    await upstream.body.dump();
    return reply.send();
  }
  upstream.body.once("error", (error: Error) => reply.raw.destroy(error));
  leaveStalled(reply);
  freeWrittenChunks(upstream.body, reply.raw);
  return reply.send(upstream.body);
}

/** Closes the connection of a client that stops reading: until then it holds a connection to the file server and an open file there. */
export function leaveStalled({ raw }: FastifyReply): void {
  raw.setTimeout(STALLED_MS, () => raw.destroy());
}
