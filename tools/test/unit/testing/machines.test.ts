import { globSync } from "node:fs";
import { ROOT } from "@svc/cli/instance";
import { filesOf, isMachine, MACHINE_SUITES, MACHINES, suiteHas } from "@svc/tools/testing/machines";
import { expect, test } from "vitest";

const names = Object.keys(MACHINES).filter(isMachine);

test("every machine is of one suite, and runs files that exist", () => {
  expect(Object.values(MACHINE_SUITES).flat().toSorted()).toEqual(names.toSorted());
  for (const [, files] of names.flatMap((name) => filesOf(name, [])))
    for (const file of files) expect(globSync(file, { cwd: ROOT }), file).toEqual([file]);
});

test("every test that needs such a machine runs in one", () => {
  const all = names.flatMap((name) => filesOf(name, []).flatMap(([, files]) => files));
  for (const file of globSync("tests/v2/*.test.ts", { cwd: ROOT })) expect(all).toContain(file);
});

test("filters pick files of a machine's projects, and with them machines", () => {
  expect(filesOf("v2", ["pause", "groups.test"])).toEqual([
    ["live", ["packages/jail-client/test/live/pause.test.ts"]],
    ["v2", ["tests/v2/groups.test.ts"]],
  ]);
  expect(filesOf("v2", ["service"])).toEqual([]);
  expect([suiteHas("v2", "tests/v2/service"), suiteHas("kvm", "tests/v2/service")]).toEqual([true, false]);
});
