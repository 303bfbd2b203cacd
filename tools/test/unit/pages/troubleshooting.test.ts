/** docs/troubleshooting.md quotes the service: every message of its first columns is written somewhere in the sources. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** Texts of the sources; what is put into a message stands as a gap, and a text that goes on in the next line as one. */
const SOURCES = globSync(["{cli,packages/*,services/*}/src/**/*.ts", "jail/src/**/*.c"], { cwd: ROOT })
  .map((path) => readFileSync(join(ROOT, path), "utf8"))
  .map((text) => text.replace(/"\s*\n?\s*"/g, "").replace(/\$\{[^}]*\}|%s/g, "…"))
  .join("\n");

const quoted = readFileSync(join(ROOT, "docs/troubleshooting.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| ---"))
  .flatMap((line) => [...(line.split(" | ")[0] ?? "").matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text))
  .filter((text) => !text.startsWith("/"));

test.each(quoted)("%s", (message) => {
  expect(message.split("…").filter((part) => !SOURCES.includes(part.trim()))).toEqual([]);
});
