/**
 * GET /console: a page for people that calls this API (console/). Its script and style sheet are bundled with the components and named
 * by their content. The page itself needs no credential and reveals nothing: it asks for a credential and sends it with its requests.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { ServiceError } from "@svc/contracts";
import type { FastifyReply, FastifyRequest, HttpServer } from "@svc/service-kit";
import { prefersHtml } from "../accept.ts";
import { takesGzip } from "../openapi/served-page.ts";

const PAGE = "/console";
const ASSETS = "/console/:asset";
/** Routes that are open to everybody. */
export const CONSOLE_PATHS = [PAGE, ASSETS] as const;

const BUNDLES = new URL("../../../../node_modules/.cache/components/", import.meta.url);
const HEADERS = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // A browser adds style attributes by itself when typed text replaces selected text.
    "style-src-attr 'unsafe-inline'",
    "connect-src 'self'",
    "img-src 'self' blob: data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};
const FOREVER = "public, max-age=31536000, immutable";

interface Asset {
  type: string;
  plain: Buffer;
  compressed: Buffer;
}

interface Made {
  page: string;
  assets: ReadonlyMap<string, Asset>;
}

export function consoleRoutes(app: HttpServer): void {
  // Built at the first request, so that the start does not wait for it.
  let made: Made | undefined;
  const parts = () => {
    made ??= make();
    return made;
  };
  app.addHook("onRequest", async (request, reply) => {
    const isRoot = (request.method === "GET" || request.method === "HEAD") && request.url === "/";
    if (isRoot && prefersHtml(request.headers.accept))
      return reply.header("vary", "accept").redirect(PAGE, 302);
  });
  app.get(PAGE, { schema: { hide: true } }, async (_request, reply) =>
    reply
      .headers({ ...HEADERS, "cache-control": "no-store" })
      .type("text/html; charset=utf-8")
      .send(parts().page),
  );
  app.get(ASSETS, { schema: { hide: true } }, async (request, reply) => {
    const asset = parts().assets.get((request.params as { asset: string }).asset);
    if (asset === undefined) throw new ServiceError("not_found");
    return sendAsset(asset, request, reply);
  });
}

function sendAsset({ type, plain, compressed }: Asset, request: FastifyRequest, reply: FastifyReply) {
  reply.headers({ ...HEADERS, "cache-control": FOREVER, vary: "accept-encoding" }).type(type);
  return takesGzip(request.headers["accept-encoding"])
    ? reply.header("content-encoding", "gzip").send(compressed)
    : reply.send(plain);
}

function built(file: string): Buffer {
  try {
    return readFileSync(new URL(file, BUNDLES));
  } catch (cause) {
    throw new ServiceError("not_found", "The console is not built here; ./svc up builds it.", { cause });
  }
}

function make(): Made {
  const assets = new Map<string, Asset>();
  const add = (file: string, type: string) => {
    const plain = built(file);
    const digest = createHash("sha256").update(plain).digest("hex").slice(0, 16);
    const name = file.replace(".", `-${digest}.`);
    assets.set(name, { type, plain, compressed: gzipSync(plain, { level: 9 }) });
    return `${PAGE}/${name}`;
  };
  const script = add("console.js", "text/javascript; charset=utf-8");
  const style = add("console-style.css", "text/css; charset=utf-8");
  const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>svc console</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body></body>
</html>
`;
  return { page, assets };
}
