/** `./svc up --packages FOLDER`: an image with Debian packages, npm packages and wheels of one's own (docs/packages.md). */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Status } from "@svc/cli/status/status";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeOwnPackages, writeWheel } from "./support/own-packages.ts";
import { privateFolder, svc } from "./support/svc.ts";

const BUILD_MS = 240_000;
const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-own-packages-")));
const own = join(folder, "my team");
makeOwnPackages(own);
// As a project's folder may have one: it is not run.
writeFileSync(join(own, "Makefile"), "install:\n\ttouch made\n");
afterAll(() => rmSync(folder, { recursive: true }));

describe("a copy with packages of its own", () => {
  let system: System;
  let api: Api;
  const run = async (lang: string, code: string) => {
    const { stdout, stderr } = await api.exec({ lang, code });
    return [stdout, stderr];
  };
  beforeAll(async () => {
    system = await startSystem({ args: ["--no-example", "--packages", own], env: OPEN_LIMITS });
    api = new Api(system.url);
  }, BUILD_MS);
  afterAll(async () => {
    expect(await system?.stop()).toEqual([]);
  });

  test("lets Python programs import the wheel, cold and in a process that is warm already", async () => {
    const code = "import own_wheel; print(own_wheel.hello())";
    expect(await run("py", code)).toEqual(["from a wheel\n", ""]);
    expect(await run("py", `import pandas\n${code}`)).toEqual(["from a wheel\n", ""]);
    expect(await run("bash", `cd /tmp && python3 -c '${code}'`)).toEqual(["from a wheel\n", ""]);
  });

  test.each([
    ["js", "console.log(require('own-npm').hello())"],
    ["js", "import { hello } from 'own-npm'; console.log(hello())"],
    ["ts", "import { hello } from 'own-npm'; console.log(hello() as string)"],
    ["node", "console.log(require('own-npm').hello())"],
    ["bash", `cd /tmp && node -e "console.log(require('own-npm').hello())"`],
  ])("lets %s programs have the npm package: %s", async (lang, code) => {
    expect(await run(lang, code)).toEqual(["from npm\n", ""]);
  });

  test("ran nothing of the folder on this machine", () => {
    expect(existsSync(join(own, "made"))).toBe(false);
  });

  test("has the command of the Debian package", async () => {
    expect(await run("bash", "seq 4 | datamash sum 1")).toEqual(["10\n", ""]);
  });

  test("tells all of them to callers, to programs that try to install more, and to the operator", async () => {
    const answer = await api.send("GET", "/languages");
    const { languages } = answer.ok<{
      languages: { name: string; packages: { name: string; version: string }[]; commands: string[] }[];
    }>();
    const packagesOf = (name: string) => languages.find((language) => language.name === name)?.packages;
    expect(packagesOf("python")).toContainEqual({ name: "own_wheel", version: "1.2.3" });
    for (const name of ["javascript", "typescript", "node"])
      expect(packagesOf(name)).toEqual([{ name: "own-npm", version: "1.2.3" }]);
    expect(languages[0]?.commands).toContain("datamash");
    expect((await run("bash", "pip install x; npm install y"))[1]).toMatch(
      /Installed for Python: .*own_wheel 1\.2\.3[\s\S]*these packages: own-npm 1\.2\.3\./,
    );
    const status = await svc(["status", "--json"], system.environment);
    const { image } = JSON.parse(status.stdout) as Extract<Status, { url: string }>;
    expect(image?.packages).toEqual([own]);
  });
});

describe("packages that cannot be had", () => {
  const wrong = join(folder, "wrong");
  const refusalOf = async (list: string, env: Record<string, string> = {}) => {
    const { environment, instance, remove } = await privateFolder();
    try {
      const up = await svc(["up", "-d", ...(list === "" ? [] : ["--packages", list])], {
        ...environment,
        ...env,
      });
      expect([up.code === 0, existsSync(instance.image)]).toEqual([false, false]);
      return up.stderr;
    } finally {
      remove();
    }
  };

  test("a group that does not exist is refused before anything is installed", async () => {
    expect(await refusalOf("dtaa")).toMatch(/there is no package group dtaa; did you mean data\?/);
    const said = await refusalOf("", { SVC_PACKAGES: "x", SVC_LANGUAGES: "cobol" });
    expect(said).toContain("there is no language cobol");
    expect(said).toContain("there is no package group x");
  });

  test("a folder without packages is refused, and so is a relative one in the settings", async () => {
    expect(await refusalOf(tmpdir())).toContain(
      "is not a folder of packages: it has none of packages, npm, wheels",
    );
    expect(await refusalOf("", { SVC_PACKAGES: "./team" })).toContain(
      "Folders in settings are absolute paths.",
    );
  });

  test(
    "a wheel of another system is named, and why it does not fit",
    async () => {
      mkdirSync(join(wrong, "wheels"), { recursive: true });
      writeWheel(join(wrong, "wheels"), { name: "foreign", tag: "cp27-cp27m-win32", module: "" });
      const said = await refusalOf(wrong);
      expect(said).toContain("foreign-1.2.3-cp27-cp27m-win32.whl is not a supported wheel on this platform");
      expect(said).toContain(`the wheels of ${wrong}/wheels could not be installed`);
    },
    BUILD_MS,
  );

  test(
    "npm packages that nothing pins are refused, and how to pin them is said",
    async () => {
      rmSync(wrong, { recursive: true, force: true });
      mkdirSync(join(wrong, "npm"), { recursive: true });
      writeFileSync(join(wrong, "npm/package.json"), '{"dependencies": {"left-pad": "1.3.0"}}');
      const said = await refusalOf(wrong);
      expect(said).toContain(`${wrong}/npm has no package-lock.json`);
      expect(said).toContain("npm install --package-lock-only");
    },
    BUILD_MS,
  );
});
