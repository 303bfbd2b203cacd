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

  /** A folder of programs: an npm that fails. */
  function withNpm(name: string): string {
    const folder = join(clone, name);
    mkdirSync(folder);
    for (const program of ["node", "npm"])
      writeFileSync(join(folder, program), "#!/bin/sh\nexit 7\n", { mode: 0o755 });
    return folder;
  }

  it("says how much it downloads before it does", () => {
    const { stderr, status } = spawnSync(join(clone, "svc"), ["doctor"], {
      encoding: "utf8",
      env: { PATH: `${withNpm("first")}:/usr/bin:/bin` },
    });
    expect(stderr).toMatch(
      /^svc: installing the npm packages .*: about \d+ MB to download, \d+ MB on disk\n$/,
    );
    expect(status).toBe(7);
  });

  it("replaces the packages of before an upgrade only where something is started or built", () => {
    const bin = join(clone, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(clone, "node_modules/.svc-installed"), "the hash of the last lock file\n");
    writeFileSync(join(bin, "node"), '#!/bin/sh\necho "$2"\n', { mode: 0o755 });
    const env = { PATH: `${withNpm("replacing")}:/usr/bin:/bin` };
    const replacing = [...NAMES, "test"].filter((name) => {
      const { stdout, stderr, status } = spawnSync(join(clone, "svc"), [name], { encoding: "utf8", env });
      if (status !== 7)
        expect({ stdout, stderr, status }).toEqual({ stdout: `${name}\n`, stderr: "", status: 0 });
      return status === 7;
    });
    expect(replacing).toEqual(["up", "restart", "install", "test"]);
    rmSync(join(clone, "node_modules"), { recursive: true });
  });

  it("makes what others can read, but for the files that exec saves", () => {
    const bin = join(clone, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    const npm = withNpm("closed");
    const hash = spawnSync("sha256sum", [join(clone, "package-lock.json")], { encoding: "utf8" }).stdout;
    const umaskOf = (name: string) =>
      spawnSync("sh", ["-c", 'umask 077; exec "$0" "$1" 2>&1', join(clone, "svc"), name], {
        encoding: "utf8",
        env: { PATH: `${npm}:/usr/bin:/bin` },
      }).stdout.trim();
    writeFileSync(join(npm, "npm"), "#!/bin/sh\numask\nexit 7\n", { mode: 0o755 });
    for (const name of ["up", "exec"]) expect(umaskOf(name)).toMatch(/\n0022$/);
    writeFileSync(join(clone, "node_modules/.svc-installed"), hash.split(" ", 1).join("\n"));
    writeFileSync(join(bin, "node"), "#!/bin/sh\numask\n", { mode: 0o755 });
    expect(["up", "key", "supervise", "exec"].map(umaskOf)).toEqual(["0022", "0022", "0022", "0077"]);
    rmSync(join(clone, "node_modules"), { recursive: true });
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
