import { LAST_VARIABLES_NAME, VARIABLES_NAME } from "@svc/contracts";
import type { Listing } from "@svc/runner/outputs/outputs";
import { planSnapshot } from "@svc/runner/session-state/plan";
import { MemberRules, readArchive, writeArchive } from "@svc/session-archive";
import { describe, expect, it } from "vitest";

const file = (path: string, number: number) =>
  ({ path, number, state: "new", size: 1, mode: 0o644 }) satisfies Listing["files"][number];

function planOf(listing: Partial<Listing>) {
  const nothing = { files: [], emptyDirectories: [], directories: [], symlinks: [], kept: [] };
  const workspace = { staged: [], restored: undefined, entry: "main.py", build: undefined };
  return planSnapshot({
    listing: {
      ...nothing,
      missing: [],
      omitted: [],
      timedOut: false,
      uncompared: false,
      unlisted: 0,
      ...listing,
    },
    ...workspace,
  });
}

describe("the variables that a run began with", () => {
  const last = file(LAST_VARIABLES_NAME, 1);

  it("are kept where it saved none", () => {
    const plan = planOf({ files: [last] });
    expect(plan.members).toMatchObject([{ path: VARIABLES_NAME, number: 1 }]);
    expect(plan.hasLastVariables).toBe(true);
  });

  it.each([
    ["a file", { files: [last, file(VARIABLES_NAME, 2)] }],
    ["a directory", { files: [last], directories: [{ path: VARIABLES_NAME, mode: 0o755 }] }],
    ["a link", { files: [last], symlinks: [{ path: VARIABLES_NAME, target: "x" }] }],
  ])("are not where %s has their place, and the state can be read", (_what, listing) => {
    const plan = planOf(listing);
    const rules = new MemberRules();
    for (const member of plan.members) rules.check(member);
    expect(plan.members.map(({ path }) => path)).toEqual([VARIABLES_NAME]);
    expect(plan.hasLastVariables).toBe(false);
  });
});

it("counts what has no name that can be stored, and nothing that is never kept", () => {
  const omitted: Listing["omitted"] = [
    { path: "caf\ufffd", reason: "name" },
    { path: ".h/caf\ufffd", reason: "name" },
    { path: "__pycache__/caf\ufffd", reason: "name" },
    { path: "pipe", reason: "type" },
  ];
  expect(planOf({ omitted }).unnamed).toBe(2);
});

it("plans no name with a line end that an archive does not give back", async () => {
  const names = Array.from({ length: 6 }, (_, at) => `a\n${"b".repeat(94 + at)}`);
  const plan = planOf({
    files: names.map((name, number) => ({ ...file(`f/${name}`, number), size: 0 })),
    directories: names.map((path) => ({ path, mode: 0o755 })),
    symlinks: names.map((path) => ({ path: `l/${path}`, target: path })),
  });
  async function* members() {
    yield* plan.members;
  }
  const read: string[] = [];
  for await (const { path, body } of readArchive(writeArchive(members()))) {
    for await (const _ of body);
    read.push(path);
  }
  expect(read).toEqual(plan.members.map(({ path }) => path));
  // Each name has one byte more than the one before it. Those that are too long are counted.
  expect(read).toEqual(expect.arrayContaining([names[2], `f/${names[1]}`, `l/${names[1]}`]));
  expect(read).not.toContain(names[3]);
});

it("is incomplete where the listing is, whatever else it is", () => {
  expect(planOf({}).incomplete).toBeUndefined();
  expect(planOf({ unlisted: 1 }).incomplete).toBe("the workspace has too many files");
  expect(planOf({ timedOut: true, unlisted: 1 }).incomplete).toBe(
    "the workspace could not be listed in time",
  );
});
