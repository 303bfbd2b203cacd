/** Writes docs/openapi.json, and the sources of the TypeScript client that are made from it. Run by `npm run openapi`. */
import { writeFile } from "node:fs/promises";
import { openApiDocument } from "@svc/api/openapi/document";
import { clientErrors, clientTypes } from "./client-sources.ts";

const at = (path: string) => new URL(`../../../${path}`, import.meta.url);
await writeFile(at("docs/openapi.json"), await openApiDocument());
await writeFile(at("packages/client/src/api.generated.ts"), await clientTypes());
await writeFile(at("packages/client/src/errors.generated.ts"), clientErrors());
process.stdout.write("wrote docs/openapi.json and the sources of packages/client that are made of it\n");
process.exit(0);
