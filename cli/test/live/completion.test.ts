/** Completion in interactive shells other than bash, asked of the shells themselves. */
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { defineCommand } from "@svc/cli/command";
import { parserFor } from "@svc/cli/commands";
import { SHELLS } from "@svc/cli/completion/shells";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "svc-completion-"));
/** Nothing of the person who runs the tests. */
const options = {
  cwd: folder,
  env: { PATH: process.env.PATH, HOME: folder, ZDOTDIR: folder, TERM: "xterm" },
};

beforeAll(async () => {
  const program = await parserFor(undefined);
  for (const shell of ["zsh", "fish"])
    writeFileSync(join(folder, `svc.${shell}`), SHELLS[shell]?.(program) ?? "");
  copyFileSync(join(import.meta.dirname, "complete.zsh"), join(folder, ".zshrc"));
  mkdirSync(join(folder, "work/data"), { recursive: true });
  writeFileSync(join(folder, "work/data.csv"), "");
});
afterAll(() => rmSync(folder, { recursive: true }));

type Offers = Map<string, string[]>;

async function offersOfFish(lines: readonly string[]): Promise<Offers> {
  // The description of a word follows after a tab.
  const ask = 'source svc.fish; for line in $argv; complete -C $line; printf "\\0"; end';
  const { stdout } = await run("fish", ["--no-config", "-c", ask, ...lines], options);
  const answers = stdout.split("\0").map((answer) => answer.split("\n").filter((word) => word !== ""));
  const words = answers.map((answer) => answer.map((word) => word.split("\t")[0] ?? ""));
  return new Map(lines.map((line, at) => [line, words[at] ?? []]));
}

/** A shell that completes has a terminal; zsh brings a module for that. The first of what is offered is the new line. */
async function offersOfZsh(lines: readonly string[]): Promise<Offers> {
  writeFileSync(join(folder, "lines"), lines.map((line) => `${line}\n`).join(""));
  rmSync(join(folder, "answers"), { force: true });
  const ask = "zmodload zsh/zpty; zpty inner zsh -d -i; while zpty -r inner said; do :; done; zpty -d inner";
  await run("zsh", ["-f", "-c", ask], options);
  const answers = readFileSync(join(folder, "answers"), "utf8").split("\0\0");
  return new Map(
    lines.map((line, at) => [line, (answers[at] ?? "").split("\0").filter((word) => word !== "")]),
  );
}

/** Of both shells alike, in the order of the alphabet. */
const CASES: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ["svc ex", ["exec"]],
  ["./svc ex", ["exec"]],
  ["svc --v", ["--version"]],
  ["svc exec --ti", ["--timeout"]],
  ["svc exec a.py --t", ["--timeout", "--token"]],
  ["svc exec a.py -- --t", []],
  ["svc exec up --de", []],
  ["svc nothing --t", []],
  ["svc key ", ["add", "list", "revoke"]],
  ["svc key re", ["revoke"]],
  ["svc key add --ex", ["--expires"]],
  ["svc key add name --ex", ["--expires"]],
  ["svc key list --ex", []],
  ["svc help ke", ["key"]],
  ["svc completion ", ["bash", "fish", "zsh"]],
  ["svc logs -f work", ["worker"]],
  ["svc logs api work", ["worker"]],
  ["svc restart egr", ["egress-gateway"]],
  ["svc exec -l ja", ["java"]],
  ["svc exec --lang ja", ["java"]],
  ["svc exec --timeout ", []],
  ["svc status ", []],
  ["svc up $(touch made) --det", ["--detach"]],
];

describe.each([
  ["zsh", offersOfZsh],
  ["fish", offersOfFish],
] as const)("completion in %s", (shell, ask) => {
  const sorted = (words: readonly string[] = []) => [...new Set(words)].sort();

  it("offers commands, options, sub-commands and values where each belongs", async () => {
    const offers = await ask(CASES.map(([line]) => line));
    const found = CASES.map(([line]) => [line, sorted(ownWords(offers.get(line)))]);
    expect(found).toEqual(CASES.map(([line, offered]) => [line, offered]));
    expect(() => readFileSync(join(folder, "made"))).toThrow("ENOENT");
  });

  it("offers every command, and no hidden one", async () => {
    const words = ownWords((await ask(["svc "])).get("svc "));
    expect(sorted(words)).toEqual([...new Set([...words, "up", "down", "exec", "key", "help"])].sort());
    expect(words).not.toContain("supervise");
  });

  it("offers files and folders where they are meant", async () => {
    const lines = ["svc exec work/d", "svc exec --in work/d", "svc up --data-dir work/d", "svc down work/d"];
    const offers = await ask(lines);
    const names = (line: string) =>
      sorted(ownWords(offers.get(line)).map((word) => word.replace("work/", "")));
    for (const line of lines.slice(0, 2))
      expect(names(line)).toEqual(shell === "zsh" ? ["data", "data.csv"] : ["data.csv", "data/"]);
    expect(names("svc up --data-dir work/d")).toEqual([shell === "zsh" ? "data" : "data/"]);
    expect(names("svc down work/d")).toEqual([]);
  });

  it("offers the value after =, and every further item of a list", async () => {
    const offers = await ask(["svc exec --lang=ja", "svc up --languages go,ja"]);
    const [lang = "", languages = ""] = [...offers.values()].map((words) => words[0]);
    expect(lang.replace("svc exec ", "").trim()).toBe("--lang=java");
    // zsh makes ready for one more.
    expect(languages.replace("svc up --languages ", "")).toMatch(/^go,java,?$/);
  });

  it("quotes texts as one word", async () => {
    const program = new Command("svc");
    const doc = 'It\'s [a]: `b` $(c) \\ "d"';
    defineCommand({ usage: "go", summary: doc, options: { x: { doc } }, run: async () => 0 }).addTo(program);
    writeFileSync(join(folder, "quoted"), SHELLS[shell]?.(program) ?? "");
    expect(await run(shell, ["-n", "quoted"], options)).toEqual({ stdout: "", stderr: "" });
  });

  /** Without the line that came of it, which zsh tells first. */
  const ownWords = (words: readonly string[] = []) => (shell === "zsh" ? words.slice(1) : words);
});
