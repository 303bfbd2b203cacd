import { LANGUAGES, languagesResponseSchema, type RuntimeInfo } from "@svc/contracts";
import { describe, expect, it } from "vitest";
import { languagesOf } from "../../src/languages/list.ts";
import { languagesText } from "../../src/languages/text.ts";

const limits = {
  run_timeout_ms: 60_000,
  memory_bytes: 512 << 20,
  output_bytes: 65_536,
  files: 50,
  file_bytes: 10_000_000,
  processes: 256,
};
const python: RuntimeInfo = {
  language: "python",
  version: "3.11.2",
  aliases: ["py"],
  packages: [{ name: "numpy", version: "1.24.2" }],
  commands: ["git", "jq"],
  limits,
};
const bash: RuntimeInfo = { language: "bash", version: "5.2.15", aliases: [], commands: ["git"], limits };

describe("the list of languages", () => {
  it("has every language of the interface, in its order; those that are not installed are absent", () => {
    const languages = languagesOf([bash, python]);
    expect(languages.map(({ name }) => name)).toEqual(LANGUAGES.map(({ runner }) => runner));
    expect(languages[0]).toEqual({
      name: "python",
      version: "3.11.2",
      aliases: ["py", "python3", "py3"],
      file_extension: "py",
      status: "ready",
      packages: python.packages,
      commands: python.commands,
      limits,
      network: false,
    });
    const ready = languages.filter(({ status }) => status === "ready");
    expect(ready.map(({ name }) => name)).toEqual(["python", "bash"]);
    expect(languages.find(({ name }) => name === "rust")).toMatchObject({ version: null, status: "absent" });
    expect(languagesResponseSchema.safeParse({ languages }).error).toBeUndefined();
  });

  it("has each installed version of a language, also of a runner that tells less", () => {
    const older = { language: "python", version: "3.9.0", aliases: [] };
    expect(languagesOf([python, older]).slice(0, 2)).toMatchObject([
      { version: "3.11.2" },
      { version: "3.9.0", packages: [], commands: [] },
    ]);
  });
});

describe("the text for a model", () => {
  it("names what there is, and that there is no network", () => {
    expect(languagesText(languagesOf([python, bash]))).toBe(
      `${[
        "Programs run in a sandbox. The working directory is /mnt/data: input files are there, and files written there are returned.",
        "There is no network, and nothing can be installed. Print what you want to see.",
        "",
        "Languages: python 3.11.2, bash 5.2.15.",
        "Packages of python: numpy 1.24.2.",
        "Commands: git, jq.",
        "Limits of a run: 60 s, 512 MiB of memory, 64 KiB of each output stream, 50 returned files of 10,000,000 bytes at most, 256 processes.",
      ].join("\n")}\n`,
    );
  });

  it("names the languages where their limits differ", () => {
    const text = languagesText(
      languagesOf([python, { ...bash, limits: { ...limits, run_timeout_ms: 1500 } }]),
    );
    expect(text).toContain("Limits of a run (python): 60 s");
    expect(text).toContain("Limits of a run (bash): 1.5 s");
  });

  it("names every package where versions would not fit", () => {
    const packages = Array.from({ length: 160 }, (_, at) => ({
      name: `package-${at}`,
      version: "1.2.3+dfsg",
    }));
    const text = languagesText(languagesOf([{ ...python, packages }]));
    expect(text).toContain("Packages of python: package-0, package-1, ");
    expect(text).toContain(", package-159.\n");
    expect(text).not.toContain("dfsg");
  });

  it("stays below 4 KB whatever is installed, and says how much is left out", () => {
    const packages = Array.from({ length: 5000 }, (_, at) => ({ name: `päckage-${at}`, version: "1.0" }));
    const commands = Array.from({ length: 1000 }, (_, at) => `command-${at}`);
    const all = LANGUAGES.map(({ runner }) => ({ ...python, language: runner, packages, commands }));
    const text = languagesText(languagesOf(all));
    expect(Buffer.byteLength(text)).toBeLessThan(4096);
    expect(text).toMatch(/and \d+ more/);
    expect(text.isWellFormed()).toBe(true);
  });
});
