/** How the OpenAPI document is made from the schemas that validate the routes. */
import type { SwaggerOptions } from "@fastify/swagger";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";

export const openApiOptions: SwaggerOptions = {
  openapi: {
    openapi: "3.1.0",
    info: {
      title: "svc",
      version: "1",
      description: "Runs untrusted code in single-use jails and returns output and files.",
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
      { name: "files", description: "Files in and out" },
      { name: "service", description: "State of the service" },
      { name: "reference", description: "What this service offers" },
      { name: "operations", description: "Health" },
    ],
  },
  transform: jsonSchemaTransform,
  transformObject: jsonSchemaTransformObject,
};
