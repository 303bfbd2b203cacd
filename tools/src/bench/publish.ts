/** Writes docs/numbers.md and the folder of its charts, which has nothing else in it. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHARTS, drawings, numbersPage, type Sources } from "./page.ts";

/** Answers what was written. */
export function publish(sources: Sources, docs: string): string[] {
  const page = join(docs, "numbers.md");
  const folder = join(docs, CHARTS);
  writeFileSync(page, numbersPage(sources));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const { name, svg } of drawings(sources)) writeFileSync(join(folder, `${name}.svg`), svg);
  return [page, folder];
}
