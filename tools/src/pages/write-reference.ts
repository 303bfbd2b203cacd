/** Writes the reference pages. Run by `npm run docs`. */
import { writeFile } from "node:fs/promises";
import { metricsPage } from "./metrics.ts";
import { configurationPage, errorsPage, secretsPage } from "./reference.ts";

const docs = new URL("../../../docs/", import.meta.url);
await writeFile(new URL("configuration.md", docs), configurationPage());
await writeFile(new URL("errors.md", docs), errorsPage());
await writeFile(new URL("metrics.md", docs), metricsPage());
await writeFile(new URL("secrets.md", docs), secretsPage());
