/** GET /v1/languages: what can be run here, for programs and for models. The list is as fresh as the cache in KnownRuntimes. */
import {
  type LanguageInfo,
  languagesQuerySchema,
  languagesResponseSchema,
  ServiceError,
} from "@svc/contracts";
import type { HttpServer } from "@svc/service-kit";
import { z } from "zod";
import type { KnownRuntimes } from "../exec/runtimes.ts";
import { languagesOf } from "./list.ts";
import { languagesText } from "./text.ts";

const answer = {
  description: "What can be run here.",
  content: {
    "application/json": { schema: languagesResponseSchema },
    "text/plain": { schema: z.string() },
  },
};

export function languageRoutes(app: HttpServer, runtimes: KnownRuntimes): void {
  app.get(
    "/v1/languages",
    {
      schema: {
        summary: "Languages, their packages, commands and limits",
        operationId: "listLanguages",
        tags: ["reference"],
        querystring: languagesQuerySchema,
        response: { 200: answer },
      },
    },
    async (request, reply) => {
      const known = await runtimes.get();
      // No worker has published runtimes yet, or Redis cannot be read now.
      if (known === undefined) throw new ServiceError("starting_up");
      const languages: LanguageInfo[] = languagesOf(known);
      if (request.query.format !== "text") return { languages };
      reply.type("text/plain; charset=utf-8").serializer((text: unknown) => String(text));
      return languagesText(languages) as never;
    },
  );
}
