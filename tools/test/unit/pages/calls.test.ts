/** The table of calls against what the code does and the documents say. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { CALLS, LISTENS } from "@svc/service-kit/config/calls";
import type { Component } from "@svc/service-kit/config/types";
import { CALLED, calls, callsTable, withCalls } from "@svc/tools/pages/calls";
import { expect, test } from "vitest";

const COMPONENTS = Object.keys(LISTENS) as Component[];
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** The variables with an address of another party that the code of a component uses. */
function addressesOf(component: Component): string[] {
  const source = globSync(`services/${component}/src/**/*.ts`, { cwd: ROOT }).map(read).join("\n");
  // The runner's own address is that by which workers know it, where it has no other.
  const text = source.replaceAll("config.SANDBOX_ADVERTISED_URL || config.SANDBOX_ENDPOINT", "");
  const ofConfig = /\bconfig\.(\w+_SERVER_URL|EGRESS_GATEWAY_URL|SANDBOX_ENDPOINT|\w+_TARGET|S3_ENDPOINT)\b/g;
  const found = [...text.matchAll(ofConfig)].map(([, name = ""]) => name);
  return [...new Set([...found, ...(text.includes("createRedis(") ? ["REDIS_URL"] : [])])].sort();
}

test.each(COMPONENTS)("%s has the addresses of those whom it calls, and no others", (component) => {
  const own = CALLS.filter(({ from }) => from === component).map(({ by }) => by ?? "");
  expect(addressesOf(component)).toEqual(own.sort());
});

test("docs/deploy.md has the table as it is", () => {
  expect(read("docs/deploy.md")).toContain(`\n${callsTable()}\n\n`);
});

test("a page without the table is refused", () => {
  expect(() => withCalls("# Deploy\n\nNothing.\n")).toThrow("no table of calls");
});

test.each(COMPONENTS)("docs/overview.md says whom %s reaches", (component) => {
  const [, cell = ""] =
    new RegExp(`^\\| ${component} \\| .* \\| ([^|]*) \\|$`, "m").exec(read("docs/overview.md")) ?? [];
  const inWords = cell.split(", ").filter((name) => name !== "jaild");
  expect(inWords.sort()).toEqual(
    calls(component)
      .map((party) => CALLED[party])
      .sort(),
  );
});
