/**
 * The table of docs/escape-tests.md, made from the tests: a folder is a class, a file's header says what it tries, and
 * the names in its calls of `test` are counted by vitest, not here. Nothing of it is written twice.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TESTS = fileURLToPath(new URL("..", import.meta.url));
export const PAGE = fileURLToPath(new URL("../../../docs/escape-tests.md", import.meta.url));
const BEGIN = "<!-- made by `npm run docs` from tests/escape -->\n";
const END = "<!-- end -->";

/** Each class of attacks has the folder of this name. */
export const CLASSES: Readonly<Record<string, string>> = {
  network: "Network",
  syscalls: "System calls",
  files: "File system and /proc",
  tenants: "Tenants and secrets",
  resources: "Memory, processor, processes, descriptors",
  disk: "Disk and inodes",
  streams: "Streams and time",
  "life-cycle": "Life cycle",
  outputs: "Outputs",
  requests: "Requests, tokens, archives",
  "warm-start": "Warm start",
};

/** Test files by the folder that they lie in, sorted. */
export function testFiles(): Map<string, string[]> {
  const files = new Map<string, string[]>();
  for (const path of globSync("*/*.test.ts", { cwd: TESTS }).sort()) {
    const [folder = "", name = ""] = path.split("/");
    files.set(folder, [...(files.get(folder) ?? []), name]);
  }
  return files;
}

/** What the header of a test file says, as one line. */
export function headerOf(folder: string, name: string): string {
  const text = readFileSync(join(TESTS, folder, name), "utf8");
  const [, comment] = /^\/\*\*(.*?)\*\//s.exec(text) ?? [];
  if (comment === undefined) throw new Error(`${folder}/${name} begins with no header`);
  return comment.replaceAll(/\n \*/g, " ").replaceAll(/\s+/g, " ").trim();
}

export function makeTable(): string {
  const files = testFiles();
  const rows = Object.entries(CLASSES).flatMap(([folder, title]) =>
    (files.get(folder) ?? []).map(
      (name, at) =>
        `| ${at === 0 ? title : ""} | [${name}](../tests/escape/${folder}/${name}) | ${headerOf(folder, name)} |\n`,
    ),
  );
  return `| class | file | what it tries |\n| --- | --- | --- |\n${rows.join("")}`;
}

/** The page with its table made anew. */
export function makePage(page: string): string {
  const [before, rest] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (before < 0 || rest < before) throw new Error("the page has no place for the table");
  return `${page.slice(0, before)}${BEGIN}\n${makeTable()}\n${page.slice(rest)}`;
}
