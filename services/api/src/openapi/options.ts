/** The options with which the OpenAPI document is generated from the schemas that validate the routes. */
import type { FastifyDynamicSwaggerOptions, SwaggerOptions } from "@fastify/swagger";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";

const DESCRIPTION = `Runs untrusted code in single-use jails and returns output and files.

The status of an answer speaks of the service, never of the program: a program that fails is a 200. An error has a stable code in
\`error\`, a sentence in \`message\`, and the wrong places in \`details\`. Unknown fields of requests are ignored, null counts as absent,
and answers may get further fields. Times are in ms or ISO 8601, sizes in bytes. What is no HTTP, or has headers beyond 16 KiB, is
answered with \`invalid_request\` before any operation sees it; an unknown path with 404 \`not_found\`, another method with 405
\`method_not_allowed\` and \`Allow\`. Without authentication every caller is the same one, and no credential is needed.`;

/** Call this when all route modules are loaded, and before the MCP server is (see `transforms`). */
export const openApiOptions = (): SwaggerOptions => ({
  openapi: {
    openapi: "3.1.0",
    info: {
      title: "svc",
      version: "1",
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "http://localhost:3112" }],
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An access token (JWT) or an API key." },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "An API key." },
      },
    },
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [
      { name: "execution", description: "Programs" },
      { name: "jobs", description: "Programs that nobody waits for" },
      { name: "files", description: "Files in and out" },
      { name: "sessions", description: "Persistent sessions" },
      { name: "service", description: "State of the service" },
      { name: "reference", description: "What this service offers" },
      { name: "operations", description: "Health" },
    ],
  },
  ...transforms(),
});

/**
 * Works on a copy of the names that schemas have now. A bundle that is loaded later (the API's MCP server) registers its own schemas
 * under the same names. In the process's one registry they replace the schemas that the routes refer to.
 */
function transforms(): Pick<FastifyDynamicSwaggerOptions, "transform" | "transformObject"> {
  const schemaRegistry = z.registry<z.core.GlobalMeta>();
  schemaRegistry._map = z.globalRegistry._map;
  schemaRegistry._idmap = new Map(z.globalRegistry._idmap);
  return {
    transform: createJsonSchemaTransform({ schemaRegistry }),
    transformObject: createJsonSchemaTransformObject({ schemaRegistry }),
  };
}
