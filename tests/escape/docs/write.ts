/** Writes the table of docs/escape-tests.md anew. */
import { readFileSync, writeFileSync } from "node:fs";
import { makePage, PAGE } from "./table.ts";

writeFileSync(PAGE, makePage(readFileSync(PAGE, "utf8")));
