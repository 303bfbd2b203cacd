/**
 * GET /v1/openapi.json: the document of the routes of this process; it equals the committed one (docs/openapi.json). GET / and /docs: the
 * same as a page for people. The page needs no credential, because a browser cannot send one, and shows nothing that is not in the
 * repository.
 */
import { type HttpServer, VERSION } from "@svc/service-kit";
import { z } from "zod";
import { documentOf } from "./generate.ts";
import { PAGE_POLICY, pageOf, type ShownDocument } from "./page.ts";
import { type ServedPage, sendPage, servedPage } from "./served-page.ts";

/** Routes of the page. */
export const PAGES = ["/", "/docs"] as const;

export function openApiRoutes(app: HttpServer): void {
  // Built at the first request, so that the start does not wait for them.
  let made: { document: string; page: ServedPage } | undefined;
  const texts = () => {
    if (made !== undefined) return made;
    const document = documentOf(app);
    made = { document, page: servedPage(pageOf(JSON.parse(document) as ShownDocument, VERSION)) };
    return made;
  };
  app.get(
    "/v1/openapi.json",
    {
      schema: {
        summary: "This document",
        operationId: "openapi",
        tags: ["reference"],
        response: { 200: z.record(z.string(), z.unknown()).meta({ description: "The document." }) },
      },
    },
    async (_request, reply) => {
      reply.type("application/json; charset=utf-8").serializer((body: unknown) => String(body));
      return texts().document as never;
    },
  );
  for (const path of PAGES) {
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      reply.headers({
        "content-security-policy": PAGE_POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      });
      return sendPage(texts().page, request, reply);
    });
  }
}
