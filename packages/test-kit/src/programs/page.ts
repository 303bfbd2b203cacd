/** A page of the documentation as a reader has it, for tests that do what it says. Trusts the page to be Markdown as we write it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";

export interface Page {
  /** Texts of the blocks of a language, in order; of one section, or of the whole page. */
  blocks: (language: string, section?: string) => string[];
  /** Cells of the rows of all tables of a section, without the heads. */
  rows: (section: string) => string[][];
}

/** `path`: below the root of the repository. */
export function readPage(path: string): Page {
  const text = readFileSync(join(ROOT, path), "utf8");
  return {
    blocks: (language, section) =>
      blocksOf(section === undefined ? text : sectionOf(text, section), language),
    rows: (section) => rowsOf(sectionOf(text, section)),
  };
}

/** What stands below a heading, up to the next one of its level or above. */
function sectionOf(page: string, title: string): string {
  const lines = withoutBlocks(page).split("\n");
  const begin = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === title);
  if (begin === -1) throw new Error(`the page has no heading ${JSON.stringify(title)}`);
  const level = /^#+/.exec(lines[begin] ?? "")?.[0].length ?? 0;
  const length = lines.slice(begin + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(" ") <= level);
  const end = length === -1 ? lines.length : begin + 1 + length;
  return page
    .split("\n")
    .slice(begin + 1, end)
    .join("\n");
}

const BLOCK = /^( *)```(\w+)\n([\s\S]*?)^\1```$/gm;

/** With empty lines in their place: a comment of a shell looks like a heading. */
const withoutBlocks = (text: string) => text.replace(BLOCK, (block) => block.replace(/[^\n]/g, ""));

function blocksOf(text: string, language: string): string[] {
  return [...text.matchAll(BLOCK)]
    .filter(([, , of]) => of === language)
    .map(([, indent = "", , block = ""]) => block.replace(new RegExp(`^${indent}`, "gm"), ""));
}

function rowsOf(text: string): string[][] {
  const lines = withoutBlocks(text).split("\n");
  const isRow = (line = "") => line.startsWith("|");
  const isRule = (line = "") => /^\|[ :|-]+\|$/.test(line);
  return lines
    .filter((line, at) => isRow(line) && !isRule(line) && !isRule(lines[at + 1]))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("\\|", "|")),
    );
}

/** The texts between backticks in a cell. */
export const codeOf = (cell = ""): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? "");
