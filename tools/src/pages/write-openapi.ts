/** Writes docs/openapi.json. Run by `npm run openapi`. */
import { writeFile } from "node:fs/promises";
import { openApiDocument } from "@svc/api/openapi/document";

const target = new URL("../../../docs/openapi.json", import.meta.url);
await writeFile(target, await openApiDocument());
process.stdout.write("wrote docs/openapi.json\n");
process.exit(0);
