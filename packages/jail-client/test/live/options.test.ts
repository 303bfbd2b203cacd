/** Numbers that jaild takes on its command line. */
import { spawnSync } from "node:child_process";
import { BINARY } from "@svc/test-kit/jail/jaild";
import { expect, it } from "vitest";

/** What it says at its start, without an image to start from. */
const said = (...options: string[]) => spawnSync(BINARY, options, { encoding: "utf8" }).stderr;

it("takes the memory of a machine with more than a TiB as the limit of all jails", () => {
  expect(said("--memory-bytes", String(4 * 2 ** 40))).toContain("--root is needed");
  expect(said("--memory-bytes", String(2 ** 60))).toContain("--memory-bytes is out of its range");
});

it("takes no size of a file system that nothing fits into, as the settings do", () => {
  expect(said("--tmp-bytes", "65536")).toContain("--root is needed");
  expect(said("--tmp-bytes", "65535")).toContain("--tmp-bytes is out of its range");
});
