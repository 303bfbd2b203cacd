/**
 * Every text with which ./svc speaks to a person is held by a snapshot (cli/help, cli/messages) or stands in a test. A new
 * one fails here until it is provoked.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { expect, it } from "vitest";
import { type Text, textsIn } from "./texts.ts";
import { UNPROVOKED } from "./unprovoked.ts";

const SOURCES = join(ROOT, "cli/src");
/** Texts for programs: shells, the kernel, systemd, processes of ours. */
const FOR_PROGRAMS = /^(completion\/|systemd\/unit\.ts|supervisor\/view\.ts)/;
/** Of words: what has none is a name, a path or an option. */
const WORDS = /[a-z]{2,}[,:;]? [a-z]{2,}/i;

const filesIn = (folder: string, end: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(end))
    .map((name) => readFileSync(join(ROOT, folder, name), "utf8"));

const plain = (text: string) => text.replaceAll(/\s+/g, " ");

const snapshots = ["cli/help", "cli/messages"].flatMap((folder) => filesIn(folder, ".txt"));
const inTests = ["cli/test", "tests/e2e"]
  .flatMap((folder) => filesIn(folder, ".test.ts"))
  .flatMap((source) => textsIn(source).map((pieces) => pieces.join("\u0000")));
const held = [...snapshots, ...inTests].map(plain);

/** Whether the pieces stand in a held text, in their order. */
function isHeld(text: Text): boolean {
  const pieces = text.map((piece) => plain(piece).trim()).filter((piece) => piece !== "");
  return held.some((candidate) => {
    let at = 0;
    return pieces.every((piece) => {
      const found = candidate.indexOf(piece, at);
      at = found + piece.length;
      return found !== -1;
    });
  });
}

const unheld = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !FOR_PROGRAMS.test(name))
  .sort()
  .flatMap((name) =>
    textsIn(readFileSync(join(SOURCES, name), "utf8"))
      .filter((text) => WORDS.test(text.join("…")) && !isHeld(text))
      .map((text) => `${name}: ${text.join("…")}`),
  );

it("the list of what is not provoked names each text once", () => {
  const all = Object.values(UNPROVOKED).flat();
  expect(new Set(all).size).toBe(all.length);
});

it("every text is held, but for those that a test does not provoke", () => {
  expect([...new Set(unheld)].sort()).toEqual(Object.values(UNPROVOKED).flat().sort());
});
