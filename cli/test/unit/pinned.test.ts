/** Everything from npm that is executed is pinned by a hash in the lock file, and nothing is fetched or run besides. */
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NODE } from "../../src/components.ts";
import { ROOT } from "../../src/instance.ts";

interface Entry {
  link?: true;
  integrity?: string;
  resolved?: string;
  version?: string;
  os?: string;
  cpu?: string;
}

const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<string, Entry>;
};
const installed = Object.entries(lock.packages).filter(
  ([path, { link }]) => path.includes("node_modules/") && !link,
);

describe("package-lock.json", () => {
  test("has a hash of every package, and no address", () => {
    expect(installed.length).toBeGreaterThan(100);
    expect(installed.filter(([, { integrity }]) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? ""))).toEqual(
      [],
    );
    expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
  });

  test("has Node for both processors, of the version that runs this", () => {
    for (const cpu of ["x64", "arm64"]) {
      const entry = lock.packages[`node_modules/node-linux-${cpu}`];
      expect(entry).toMatchObject({ os: "linux", cpu, version: process.versions.node });
    }
  });
});

test("no package runs a script when it is installed", () => {
  expect(readFileSync(join(ROOT, ".npmrc"), "utf8").split("\n")).toContain("ignore-scripts=true");
});

test("the Node of the components is a file of one of these packages", () => {
  expect(realpathSync(NODE)).toBe(join(ROOT, `node_modules/node-linux-${process.arch}/bin/node`));
  expect(realpathSync(process.execPath)).toBe(realpathSync(NODE));
});
