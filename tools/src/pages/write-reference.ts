/** Writes the reference pages and the classes of errors of the Python client. Run by `npm run docs`. */
import { writeFile } from "node:fs/promises";
import { readMeasurements } from "../scaling/results.ts";
import { metricsPage } from "./metrics.ts";
import { pythonErrors } from "./python-errors.ts";
import { configurationPage, errorsPage, secretsPage } from "./reference.ts";
import { scalingPage } from "./scaling.ts";

const docs = new URL("../../../docs/", import.meta.url);
await writeFile(new URL("configuration.md", docs), configurationPage());
await writeFile(new URL("errors.md", docs), errorsPage());
await writeFile(new URL("metrics.md", docs), metricsPage());
await writeFile(new URL("secrets.md", docs), secretsPage());
await writeFile(new URL("scaling.md", docs), scalingPage(readMeasurements()));

const python = new URL("../../../clients/python/svc_client/", import.meta.url);
await writeFile(new URL("errors.py", python), pythonErrors());
