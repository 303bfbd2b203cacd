/** Names that pass the rules in a real jail: staged, seen by the program and listed as the same bytes. */
import { fileNameProblem, findPathConflict } from "@svc/contracts";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, runJob } from "@svc/test-kit/jail/run";
import { hostileName, namesOfBytes } from "@svc/test-kit/storage/hostile-names";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { decodeListing } from "../../src/outputs/listing.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 2 });
});
afterAll(() => jaild?.stop());

const byBytes = (names: readonly string[]) =>
  [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

it("inputs of any good names lie where they were put, and come back unchanged", async () => {
  const good = hostileName.filter((name) => fileNameProblem(name) === undefined);
  await fc.assert(
    fc.asyncProperty(fc.array(good, { minLength: 1, maxLength: 40 }), async (names) => {
      const kept: string[] = [];
      for (const name of names) if (findPathConflict([...kept, name]) === undefined) kept.push(name);
      const files = Object.assign(Object.create(null), Object.fromEntries(kept.map((name) => [name, name])));
      const seen = await bash(jaild, "find . -type f -printf '%P\\0'", { files });
      expect(byBytes(seen.out.split("\0").slice(0, -1))).toEqual(byBytes(kept));
      const listing = decodeListing(seen.listing);
      expect(listing.files.map(({ path }) => path)).toEqual(byBytes(kept));
      expect(new Set(listing.files.map(({ state }) => state))).toEqual(new Set(["unchanged"]));
    }),
    { numRuns: 15 },
  );
});

it("files of any names that a program can make are listed byte for byte, or as omitted", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(namesOfBytes, { minLength: 1, maxLength: 40 }), async (paths) => {
      const program = `
import os, sys, json
made = []
for line in sys.stdin.read().split():
    path = bytes.fromhex(line)
    try:
        os.makedirs(os.path.dirname(path) or b".", exist_ok=True)
        with open(path, "x") as f: f.write("x")
        made.append(line)
    except OSError: pass
print(json.dumps(made))`;
      const stdin = paths.map((path) => path.toString("hex")).join("\n");
      const run = await runJob(jaild, { argv: ["/usr/bin/python3", "-c", program], stdin });
      // Directories with a dot in front are the program's own business.
      const shown = (path: string) =>
        !path
          .split("/")
          .slice(0, -1)
          .some((directory) => directory.startsWith("."));
      const made = (JSON.parse(run.out) as string[])
        .map((path) => Buffer.from(path, "hex").toString("latin1"))
        .filter(shown);
      expect(run.listing.files.map(({ path }) => path.toString("latin1"))).toEqual(made.sort());
      expect(run.listing.omitted).toEqual([]);
    }),
    { numRuns: 10 },
  );
});
