/** Reads results, and writes docs/numbers.md and the folder of its charts, which has nothing else in it. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { type AnyResult, CHARTS, drawings, numbersPage, type Sources } from "./page.ts";
import { type Result, readResult } from "./result.ts";

/** The first result is of the whole. */
export function readSources([bench = "", ...others]: readonly string[]): Sources {
  const path = (file: string) => relative(ROOT, resolve(file));
  return {
    bench: { result: readResult<Result>(bench, "bench"), path: path(bench) },
    others: others.map((file) => ({ result: readResult<AnyResult>(file), path: path(file) })),
  };
}

/** Returns the paths that were written. */
export function publish(sources: Sources, docs: string): string[] {
  const page = join(docs, "numbers.md");
  const folder = join(docs, CHARTS);
  writeFileSync(page, numbersPage(sources));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const { name, svg } of drawings(sources)) writeFileSync(join(folder, `${name}.svg`), svg);
  return [page, folder];
}
