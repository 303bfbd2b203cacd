/** What each command says of itself: files in cli/help, which ./svc shows before anything is installed. `-u` renews them. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommanderError } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parserFor } from "../../src/commands.ts";
import { ROOT } from "../../src/instance.ts";
import { versionOf, versionText } from "../../src/version.ts";

const FOLDER = join(ROOT, "cli/help");
const NAMES = (await parserFor(undefined)).commands.map((command) => command.name());

/** `./svc ARGUMENT…` of operators. */
async function printed(...argv: string[]): Promise<string> {
  let text = "";
  const parser = await parserFor(argv[0]);
  for (const each of [parser, ...parser.commands])
    each.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 80 });
  await parser.parseAsync(argv, { from: "user" }).catch((error) => {
    if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
  });
  return text;
}

describe("help", () => {
  it("of ./svc lists the commands of an operator", async () => {
    await expect(await printed("--help")).toMatchFileSnapshot(join(FOLDER, "svc.txt"));
  });

  it.each(NAMES)("of %s", async (name) => {
    await expect(await printed(name, "--help")).toMatchFileSnapshot(join(FOLDER, `${name}.txt`));
  });

  it("is kept for commands that exist, and no others", () => {
    expect(readdirSync(FOLDER).sort()).toEqual(["svc", ...NAMES].map((name) => `${name}.txt`).sort());
  });
});

describe("./svc of a fresh clone", () => {
  const clone = mkdtempSync(join(tmpdir(), "svc-clone-"));
  beforeAll(() => {
    mkdirSync(join(clone, "cli"));
    for (const name of ["svc", "package.json", "package-lock.json", "cli/help"])
      cpSync(join(ROOT, name), join(clone, name), { recursive: true });
  });
  afterAll(() => rmSync(clone, { recursive: true }));

  /** Without npm: what wants to install something fails. */
  const svc = (...argv: string[]) =>
    execFileSync(join(clone, "svc"), argv, { encoding: "utf8", env: { PATH: "/usr/bin:/bin" } });

  it.each([
    [[], "svc"],
    [["--help"], "svc"],
    [["-h"], "svc"],
    [["help"], "svc"],
    [["help", "up"], "up"],
    [["up", "--help"], "up"],
    [["exec", "--lang", "py", "-h"], "exec"],
    [["../help/up", "--help"], "svc"],
    [["nothing", "--help"], "svc"],
  ])("shows the help that %j asks for, and installs nothing", (argv, name) => {
    expect(svc(...argv)).toBe(readFileSync(join(clone, `cli/help/${name}.txt`), "utf8"));
    expect(readdirSync(clone)).not.toContain("node_modules");
  });

  it("says how much it downloads before it does", () => {
    const npm = join(clone, "bin");
    mkdirSync(npm);
    for (const name of ["node", "npm"])
      writeFileSync(join(npm, name), "#!/bin/sh\nexit 7\n", { mode: 0o755 });
    const { stderr, status } = spawnSync(join(clone, "svc"), ["doctor"], {
      encoding: "utf8",
      env: { PATH: `${npm}:/usr/bin:/bin` },
    });
    expect(stderr).toMatch(
      /^svc: installing the npm packages .*: about \d+ MB to download, \d+ MB on disk\n$/,
    );
    expect(status).toBe(7);
  });

  it("says its version", () => {
    expect(svc("--version")).toBe(`${versionOf().version}\n`);
  });
});

it("./svc says version and commit with and without its packages", async () => {
  const text = `${versionText(versionOf())}\n`;
  expect(await printed("--version")).toBe(text);
  expect(execFileSync(join(ROOT, "svc"), ["--version"], { encoding: "utf8" })).toBe(text);
  expect(text).toMatch(/^\d+\.\d+\.\d+ \(commit [0-9a-f]{12}\)\n$/);
});
