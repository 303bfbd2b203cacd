import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineCommand } from "../../src/command.ts";
import { parserFor } from "../../src/commands.ts";
import { SHELLS } from "../../src/completion/shells.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-completion-"));
afterAll(() => rmSync(folder, { recursive: true }));

let program: Command;
beforeAll(async () => {
  program = await parserFor(undefined);
});

/** What bash offers for the last word. */
function offered(...words: string[]): string[] {
  const script = join(folder, "svc.bash");
  writeFileSync(script, SHELLS.bash?.(program) ?? "");
  const ask = `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync("bash", ["-euc", ask, script, "svc", ...words], {
    encoding: "utf8",
    cwd: folder,
  });
  return output.split("\n").filter((line) => line !== "");
}

describe("completion in bash", () => {
  it("offers the commands, then the options of the command", () => {
    expect(offered("")).toEqual(expect.arrayContaining(["up", "down", "exec", "doctor", "completion"]));
    expect(offered("")).not.toContain("supervise");
    expect(offered("ex")).toEqual(["exec"]);
    expect(offered("exec", "a.py", "--ti")).toEqual(["--timeout"]);
    expect(offered("exec", "--t")).toEqual(["--timeout", "--token"]);
    expect(offered("exec", "--se")).toEqual(["--session", "--settings"]);
    expect(offered("up", "--se")).toEqual(["--sessions", "--settings"]);
    expect(offered("re")).toEqual(["restart"]);
    expect(offered("status", "--j")).toEqual(["--json"]);
    expect(offered("--")).toEqual(["--version", "--help"]);
    expect(offered("down", "-")).toEqual(["--data-dir", "--port-offset", "--settings", "-h", "--help"]);
  });

  it("offers sub-commands and their options", () => {
    expect(offered("key", "")).toEqual(["add", "list", "revoke"]);
    expect(offered("key", "r")).toEqual(["revoke"]);
    expect(offered("key", "add", "--ex")).toEqual(["--expires"]);
    expect(offered("key", "list", "--ex")).toEqual([]);
    expect(offered("help", "ke")).toEqual(["key"]);
  });

  it("offers components, languages and shells, and every further item of a list", () => {
    expect(offered("logs", "-f", "work")).toEqual(["worker"]);
    expect(offered("restart", "")).toEqual(expect.arrayContaining(["api", "runner"]));
    expect(offered("completion", "")).toEqual(["bash", "zsh", "fish"]);
    for (const flag of ["-l", "--lang"]) expect(offered("exec", flag, "ja")).toEqual(["java"]);
    expect(offered("exec", "--lang", "=", "ja")).toEqual(["java"]);
    expect(offered("exec", "--lang", "=")).toContain("py");
    expect(offered("up", "--languages", "go,ja")).toEqual(["go,java"]);
    expect(offered("exec", "--timeout", "")).toEqual([]);
  });

  it("offers folders where a folder is meant", () => {
    mkdirSync(join(folder, "data"));
    writeFileSync(join(folder, "datafile"), "");
    expect(offered("up", "--data-dir", "dat")).toEqual(["data"]);
  });

  it("leaves files to the shell, and says nothing about an unknown command", () => {
    expect(offered("exec", "")).toEqual([]);
    expect(offered("exec", "--in", "a")).toEqual([]);
    expect(offered("nothing", "--t")).toEqual([]);
  });

  it("evaluates nothing that was typed", () => {
    expect(offered("exec", `$(touch ${join(folder, "made")})`, "-$(touch made)")).toEqual([]);
    expect(offered("$(touch made)", "-`touch made`")).toEqual([]);
    expect(spawnSync("test", ["-e", join(folder, "made")]).status).toBe(1);
  });
});

describe("completion scripts", () => {
  it.each(Object.keys(SHELLS))("of %s name every option of every command", (shell) => {
    const script = SHELLS[shell]?.(program) ?? "";
    for (const command of program.commands) {
      for (const option of command.options) {
        const name = option.long?.slice(2);
        expect(script, `${command.name()} ${name}`).toMatch(new RegExp(`(--|-l )${name}\\b`));
      }
    }
  });

  it("of bash quote texts as one word", () => {
    const program = new Command("svc");
    const doc = 'It\'s [a]: `b` $(c) \\ "d"';
    defineCommand({ usage: "go", summary: doc, options: { x: { doc } }, run: async () => 0 }).addTo(program);
    const words = spawnSync("bash", ["-n"], { input: SHELLS.bash?.(program) ?? "" });
    expect(words.stderr.toString()).toBe("");
  });
});
