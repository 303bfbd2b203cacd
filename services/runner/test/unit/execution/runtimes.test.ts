import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServiceError } from "@svc/contracts";
import { type Runtime, Runtimes } from "@svc/runner/execution/runtimes";
import type { Config } from "@svc/service-kit";
import { describe, expect, it } from "vitest";

const runtime = (language: string, version: string): Runtime => ({
  language,
  version,
  entry: "main",
  command: ["/bin/x", "{entry}"],
  env: {},
});
const runtimes = new Runtimes([
  runtime("python", "3.11.2"),
  runtime("python", "3.13.0"),
  runtime("python", "3.14.0-rc.1"),
  runtime("python", "3.9.9"),
  runtime("bash", "5.2.15"),
]);

describe("find", () => {
  it.each([
    ["python", "", "3.13.0"],
    ["python", "*", "3.13.0"],
    ["python", "x", "3.13.0"],
    ["python", "3", "3.13.0"],
    ["python", "3.11", "3.11.2"],
    ["python", ">=3.9 <3.12", "3.11.2"],
    ["python", "~3.9.1", "3.9.9"],
    ["python", "3.14.0-rc.1", "3.14.0-rc.1"],
    ["PY3", "3.x", "3.13.0"],
    ["sh", "5", "5.2.15"],
  ])("%s %j is %s: the newest that fits, pre-releases only when named", (name, range, version) => {
    expect(runtimes.find(name, range).version).toBe(version);
  });

  it.each([
    ["ruby", "*", "unsupported_language"],
    ["rust", "*", "unsupported_language"],
    ["", "*", "unsupported_language"],
    ["__proto__", "*", "unsupported_language"],
    ["python", "2", "unsupported_version"],
    ["python", "latest", "unsupported_version"],
    ["python", "3.11.2; rm", "unsupported_version"],
    ["bash", "6", "unsupported_version"],
  ])("%s %j is %s, and the message lists what is installed", (name, range, code) => {
    const find = () => runtimes.find(name, range);
    expect(find).toThrow(ServiceError);
    expect(find).toThrow(expect.objectContaining({ code, status: 400 }));
    expect(find).toThrow(/python 3\.11\.2, python 3\.13\.0, .*bash 5\.2\.15/);
  });
});

describe("load", () => {
  it.each(["programmatic", "session"] as const)(
    "reads how a program of the kind %s is started, and refuses a manifest that says it badly",
    async (kind) => {
      const directory = await mkdtemp(join(tmpdir(), "svc-runtimes-"));
      const load = async (start: unknown) => {
        const manifest = { image: "x", runtimes: [{ ...runtime("bash", "5.2.15"), [kind]: start }] };
        await writeFile(join(directory, "runtimes.json"), JSON.stringify(manifest));
        const config = { SANDBOX_PACKAGES_DIRECTORY: directory, SVC_LANGUAGES: [] as string[] };
        return (await Runtimes.load(config as unknown as Config)).find("bash", "")[kind];
      };
      try {
        const started = { command: ["/usr/bin/bash", "{entry}"], env: { BASH_ENV: "/prelude" } };
        expect(await load(started)).toEqual(started);
        expect(await load(undefined)).toBeUndefined();
        await expect(load({ command: [], env: {} })).rejects.toThrow();
        await expect(load({ command: ["x"] })).rejects.toThrow();
      } finally {
        await rm(directory, { recursive: true });
      }
    },
  );
});

describe("zygotes", () => {
  const zygote = { name: "small", argv: ["/bin/x", "main"], words: [] };
  const programmatic = { command: ["/bin/x", "/prelude", "{entry}"], env: {} };
  const session = { command: ["/bin/x", "/session", "{entry}"], env: {} };
  const zygotesOf = (own: Partial<Runtime>) =>
    new Runtimes([{ ...runtime("python", "3.11.2"), ...own }, runtime("bash", "5.2.15")]).zygotes();

  it("know the commands of programs that have tools, and of sessions, where they are for these", () => {
    const large = { ...zygote, name: "large", words: ["csv"] };
    expect(zygotesOf({ programmatic, zygotes: [zygote, { ...large, programmatic: true }] })).toEqual([
      zygote,
      { ...large, preludes: [["/bin/x", "/prelude", "main"]] },
    ]);
    const both = { ...large, programmatic: true, session: true };
    expect(zygotesOf({ programmatic, session, zygotes: [both] })[0]?.preludes).toEqual([
      ["/bin/x", "/prelude", "main"],
      ["/bin/x", "/session", "main"],
    ]);
    expect(zygotesOf({ session, zygotes: [{ ...large, programmatic: true }] })).toEqual([large]);
    expect(zygotesOf({ zygotes: [{ ...zygote, programmatic: true }] })).toEqual([zygote]);
    expect(zygotesOf({})).toEqual([]);
  });
});

const LIMITS = {
  run_timeout_ms: 1,
  memory_bytes: 2,
  output_bytes: 3,
  files: 4,
  file_bytes: 5,
  processes: 6,
};

describe("the languages that are offered", () => {
  const load = async (...names: string[]) => {
    const directory = await mkdtemp(join(tmpdir(), "svc-runtimes-"));
    const manifest = { image: "x", runtimes: [runtime("bash", "5.2.15"), runtime("go", "1.19.8")] };
    await writeFile(join(directory, "runtimes.json"), JSON.stringify(manifest));
    const config = { SANDBOX_PACKAGES_DIRECTORY: directory, SVC_LANGUAGES: names };
    try {
      return (await Runtimes.load(config as unknown as Config))
        .list(() => LIMITS)
        .map(({ language }) => language);
    } finally {
      await rm(directory, { recursive: true });
    }
  };

  it.each([
    [[], ["bash", "go"]],
    [["all"], ["bash", "go"]],
    [["golang"], ["go"]],
    [
      ["SH", "go"],
      ["bash", "go"],
    ],
  ])("SVC_LANGUAGES %j offers %j", async (names, offered) => expect(await load(...names)).toEqual(offered));

  it("one that is not installed stops the runner and says how to add it; so does one that does not exist", async () => {
    await expect(load("sh", "rs")).rejects.toThrow(/not installed: rust\. .*\.\/svc up --languages rs/);
    await expect(load("cobol")).rejects.toThrow("cobol");
  });

  it("a refusal says how to add what could be installed", () => {
    expect(() => runtimes.find("rust", "*")).toThrow("./svc up --languages rs adds rust");
    expect(() => runtimes.find("cobol", "*")).not.toThrow("./svc");
  });
});

describe("list", () => {
  it("names every runtime with its version and all names of its language", () => {
    expect(runtimes.list(() => LIMITS).at(-1)).toEqual({
      language: "bash",
      version: "5.2.15",
      aliases: ["bash", "sh", "shell"],
      packages: [],
      commands: [],
      limits: LIMITS,
    });
    expect(runtimes.list(() => LIMITS)).toHaveLength(5);
  });
});
