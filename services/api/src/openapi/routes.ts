/** GET /v1/openapi.json: the document of the routes that answer here, which is the committed one (docs/openapi.json). */
import { errorBodySchema } from "@svc/contracts";
import type { HttpServer } from "@svc/service-kit";
import { z } from "zod";
import { documentOf } from "./generate.ts";

const errors = Object.fromEntries([401, 429].map((status) => [status, errorBodySchema]));

export function openApiRoute(app: HttpServer): void {
  let text: string | undefined;
  app.get(
    "/v1/openapi.json",
    {
      schema: {
        summary: "This document",
        operationId: "openapi",
        tags: ["reference"],
        response: { 200: z.record(z.string(), z.unknown()), ...errors },
      },
    },
    async (_request, reply) => {
      text ??= documentOf(app);
      reply.type("application/json; charset=utf-8").serializer((body: unknown) => String(body));
      return text as never;
    },
  );
}
