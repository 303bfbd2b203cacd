/** A page that never changes while the process lives. It is compressed once, and not sent again to a client that has it. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "@svc/service-kit";

export interface ServedPage {
  plain: Buffer;
  compressed: Buffer;
  /** A weak tag, because the plain and the compressed form share it. */
  etag: string;
}

export function servedPage(text: string): ServedPage {
  const plain = Buffer.from(text);
  const digest = createHash("sha256").update(plain).digest("base64url");
  return { plain, compressed: gzipSync(plain, { level: 9 }), etag: `W/"${digest}"` };
}

/** After this time a browser asks whether the page has changed. */
const FRESH_SECONDS = 300;

export function sendPage(
  { plain, compressed, etag }: ServedPage,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  reply.headers({
    etag,
    vary: "accept-encoding",
    "cache-control": `public, max-age=${FRESH_SECONDS}`,
  });
  if (hasTag(request.headers["if-none-match"], etag)) return reply.code(304).send();
  reply.type("text/html; charset=utf-8");
  return takesGzip(request.headers["accept-encoding"])
    ? reply.header("content-encoding", "gzip").send(compressed)
    : reply.send(plain);
}

const words = (header: string | string[] | undefined, separator: string) =>
  String(header ?? "")
    .split(separator)
    .map((word) => word.trim());

/** Uses the weak comparison of tags (RFC 9110, 13.1.2). Splitting at commas is safe, because our own tags contain none. */
function hasTag(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.replace(/^W\//, "");
  return words(header, ",").some((tag) => tag === "*" || opaque(tag) === opaque(etag));
}

const REFUSED = /^q\s?=\s?0(\.0{0,3})?$/;

export function takesGzip(header: string | string[] | undefined): boolean {
  return words(header, ",").some((word) => {
    const [name = "", ...parameters] = words(word.toLowerCase(), ";");
    return name === "gzip" && !parameters.some((parameter) => REFUSED.test(parameter));
  });
}
