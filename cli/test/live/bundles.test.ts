import { readFileSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { BUNDLES } from "@svc/cli/components";
import { buildBundles } from "@svc/cli/install/bundles";
import { ROOT } from "@svc/cli/instance";
import { expect, test } from "vitest";

const COMPLETE = join(BUNDLES, "complete");
const API = join(BUNDLES, "api.mjs");

test("bundles know every file of this tree that went into them, also those of ./svc that the launcher shares", async () => {
  await buildBundles();
  const inputs = readFileSync(COMPLETE, "utf8")
    .split("\n")
    .map((line) => line.replace(/^\S+ /, ""));
  expect(inputs).toEqual(
    expect.arrayContaining([
      "cli/src/microvm/machine.ts",
      "services/api/src/main.ts",
      "packages/service-kit/src/tracing/sdk.ts",
      "console/src/main.tsx",
      "console/src/style.css",
    ]),
  );
});

test("bundles are made anew for a file that is older than they are, and not where nothing has changed", async () => {
  const file = join(ROOT, "services/api/src/main.ts");
  const { atime, mtime } = statSync(file);
  const made = () => statSync(API, { bigint: true }).mtimeNs;
  await buildBundles();
  const first = made();
  await buildBundles();
  expect(made()).toBe(first);
  try {
    utimesSync(file, atime, new Date(mtime.getTime() - 86_400_000));
    await buildBundles();
    expect(made()).not.toBe(first);
  } finally {
    utimesSync(file, atime, mtime);
    await buildBundles();
  }
});
