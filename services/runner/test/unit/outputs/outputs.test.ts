import { findPathConflict } from "@svc/contracts";
import {
  type ListedFile,
  type Listing,
  type OutputLimits,
  planOutputs,
  type StagedInput,
} from "@svc/runner/outputs/outputs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const LIMITS: OutputLimits = {
  maxFiles: 50,
  maxFileBytes: 10_000_000,
  maxTotalBytes: 500_000_000,
  names: { maxLength: 256, maxDepth: 10 },
};
const NOTHING: Listing = {
  files: [],
  emptyDirectories: [],
  directories: [],
  symlinks: [],
  kept: [],
  missing: [],
  omitted: [],
  timedOut: false,
  uncompared: false,
  unlisted: 0,
};
const ENTRY: StagedInput = { index: 0, readOnly: false };

const input = (index: number, name: string, readOnly = false): StagedInput & { ref: { name: string } } => ({
  index,
  readOnly,
  ref: { name, id: `object-${index}`, storage_session_id: `session-${index}` },
});
const file = (path: string, size = 1, state: ListedFile["state"] = "new", from?: number): ListedFile => ({
  number: 0,
  state,
  size,
  mode: 0o644,
  path,
  ...(from === undefined ? {} : { input: from }),
});
const plan = (
  listing: Partial<Listing>,
  inputs: StagedInput[] = [ENTRY],
  limits: Partial<OutputLimits> = {},
) => planOutputs({ ...NOTHING, ...listing }, inputs, { ...LIMITS, ...limits });
const namesOf = (files: readonly { name: string }[]) => files.map(({ name }) => name);

describe("what becomes of a file", () => {
  const data = input(1, "data.csv");

  it("a new file is stored", () => {
    expect(plan({ files: [file("out.png", 7)] }).uploads).toEqual([{ name: "out.png", size: 7, number: 0 }]);
  });

  it("the entry file is no output while it is unchanged, and a plain one when it changed", () => {
    expect(plan({ files: [file("main.py", 1, "unchanged", 0)] })).toMatchObject({
      uploads: [],
      inherited: [],
    });
    expect(plan({ files: [file("main.py", 1, "changed", 0)] }).uploads).toEqual([
      { name: "main.py", size: 1, number: 0 },
    ]);
  });

  it("an unchanged input is inherited with the ids it came with", () => {
    const { uploads, inherited, deleted } = plan({ files: [file("data.csv", 5, "unchanged", 1)] }, [
      ENTRY,
      data,
    ]);
    expect({ uploads, inherited, deleted }).toEqual({ uploads: [], inherited: [data.ref], deleted: [] });
  });

  it("a changed input is stored and says what it was; it is not inherited", () => {
    const { uploads, inherited, deleted } = plan({ files: [file("data.csv", 5, "changed", 1)] }, [
      ENTRY,
      data,
    ]);
    expect(uploads).toEqual([{ name: "data.csv", size: 5, number: 0, modifiedFrom: data.ref }]);
    expect({ inherited, deleted }).toEqual({ inherited: [], deleted: [] });
  });

  it("a removed input is deleted; a renamed one is deleted and new", () => {
    expect(plan({ missing: [1] }, [ENTRY, data])).toMatchObject({ deleted: ["data.csv"], inherited: [] });
    const renamed = plan({ missing: [1], files: [file("other.csv")] }, [ENTRY, data]);
    expect(renamed).toMatchObject({ deleted: ["data.csv"], uploads: [{ name: "other.csv" }] });
    expect(renamed.uploads[0]).not.toHaveProperty("modifiedFrom");
  });

  it("a removed entry file or directory of storage is nobody's loss", () => {
    expect(plan({ missing: [0, 5] }, [ENTRY, { index: 5, readOnly: false }])).toMatchObject({ deleted: [] });
  });

  it.each([
    ["left alone", { files: [file("ro.csv", 1, "unchanged", 1)] }],
    ["changed", { files: [file("ro.csv", 1, "changed", 1)] }],
    ["removed", { missing: [1] }],
    ["replaced by another file", { missing: [1], files: [file("ro.csv", 9)] }],
  ] satisfies [string, Partial<Listing>][])(
    "a read-only input comes back as it was when it is %s",
    (_what, listing) => {
      const readOnly = input(1, "ro.csv", true);
      const result = plan(listing, [ENTRY, readOnly]);
      expect(result).toMatchObject({ uploads: [], inherited: [readOnly.ref], deleted: [], omitted: [] });
    },
  );

  it("an empty directory is a .dirkeep of zero bytes without a number", () => {
    expect(plan({ emptyDirectories: ["a/b"] }).uploads).toEqual([{ name: "a/b/.dirkeep", size: 0 }]);
  });

  it("a directory that was asked for is inherited while it stands and deleted when it is gone", () => {
    const directory = input(3, "logs/.dirkeep");
    expect(plan({ kept: [3] }, [ENTRY, directory])).toMatchObject({
      inherited: [directory.ref],
      deleted: [],
    });
    expect(plan({ missing: [3] }, [ENTRY, directory])).toMatchObject({
      inherited: [],
      deleted: ["logs/.dirkeep"],
    });
  });

  it("a .dirkeep that the program wrote itself changes the one that was asked for", () => {
    const directory = input(3, "logs/.dirkeep");
    const result = plan({ kept: [3], files: [file("logs/.dirkeep", 4)] }, [ENTRY, directory]);
    expect(result.uploads).toEqual([
      { name: "logs/.dirkeep", size: 4, number: 0, modifiedFrom: directory.ref },
    ]);
    expect(result.inherited).toEqual([]);
  });

  it.each([
    ["a file below a read-only input", "ro.csv/part", "ro.csv"],
    ["a file in the place of a read-only input's directory", "dir", "dir/ro.csv"],
  ])("%s is omitted: the two could not be staged together", (_what, path, name) => {
    const readOnly = input(1, name, true);
    const result = plan({ missing: [1], files: [file(path)] }, [ENTRY, readOnly]);
    expect(result).toMatchObject({
      uploads: [],
      inherited: [readOnly.ref],
      omitted: [{ name: path, reason: "name" }],
    });
  });

  it("what the jail left out is passed on", () => {
    const omitted = [{ path: "link", reason: "type" as const }];
    expect(plan({ omitted, unlisted: 3 })).toMatchObject({
      omitted: [{ name: "link", reason: "type" }],
      unlisted: 3,
    });
  });
});

describe("limits", () => {
  it("new and changed files are stored in path order, by bytes", () => {
    const names = ["b", "a/z", "a", "é", "Z", "a.b", "🎉", "\uffee"];
    const sorted = [...names].sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
    expect(namesOf(plan({ files: names.map((name) => file(name)) }).uploads)).toEqual(sorted);
  });

  it("the first fifty are stored, the others are omitted by count", () => {
    const files = Array.from({ length: 53 }, (_, at) => file(`f${String(at).padStart(2, "0")}`));
    const { uploads, omitted } = plan({ files });
    expect(uploads).toHaveLength(50);
    expect(omitted).toEqual(["f50", "f51", "f52"].map((name) => ({ name, reason: "count" })));
  });

  it("inherited inputs do not count", () => {
    const inputs = Array.from({ length: 60 }, (_, at) => input(at + 1, `in${at}`));
    const files = inputs.map(({ ref, index }) => file(ref.name, 1, "unchanged", index));
    const { uploads, inherited } = plan({ files: [...files, file("out")] }, [ENTRY, ...inputs]);
    expect(namesOf(uploads)).toEqual(["out"]);
    expect(inherited).toEqual(inputs.map(({ ref }) => ref));
  });

  it("a file of exactly the limit is stored, a byte more is omitted by size", () => {
    const { uploads, omitted } = plan({
      files: [file("a", 10_000_000), file("b", 10_000_001), file("c", 0)],
    });
    expect(namesOf(uploads)).toEqual(["a", "c"]);
    expect(omitted).toEqual([{ name: "b", reason: "size", size: 10_000_001 }]);
  });

  it("omitted files take no place and no bytes from the others", () => {
    const files = [file("a", 99), file("b\\", 1), file("c", 1), file("d", 1)];
    const { uploads } = plan({ files }, [ENTRY], { maxFiles: 2, maxFileBytes: 50, maxTotalBytes: 2 });
    expect(namesOf(uploads)).toEqual(["c", "d"]);
  });

  it("what passes the budget of all bytes is omitted, smaller files after it are not", () => {
    const { uploads, omitted } = plan({ files: [file("a", 60), file("b", 50), file("c", 40)] }, [ENTRY], {
      maxTotalBytes: 100,
    });
    expect(namesOf(uploads)).toEqual(["a", "c"]);
    expect(omitted).toEqual([{ name: "b", reason: "total_size" }]);
  });

  it.each(["a\\b", "a\nb", "x".repeat(256), `${"d/".repeat(10)}f`])(
    "a name that no caller could use is omitted: %j",
    (name) => {
      expect(plan({ files: [file(name)] }).omitted).toEqual([{ name, reason: "name" }]);
    },
  );

  it("an empty directory too deep for its .dirkeep is omitted", () => {
    const path = "d/".repeat(10).slice(0, -1);
    expect(plan({ emptyDirectories: [path] }).omitted).toEqual([
      { name: `${path}/.dirkeep`, reason: "name" },
    ]);
  });
});

describe("for any listing", () => {
  const path = fc
    .array(fc.constantFrom("a", "b", "c", ".dirkeep", "x\\y"), { minLength: 1, maxLength: 3 })
    .map((segments) => segments.join("/"));
  const inputsOf = fc.uniqueArray(
    fc.record({ name: path, readOnly: fc.boolean(), fate: fc.nat({ max: 3 }) }),
    {
      selector: ({ name }) => name,
      maxLength: 6,
    },
  );
  const limitsOf = fc.record({
    maxFiles: fc.integer({ min: 0, max: 5 }),
    maxFileBytes: fc.integer({ min: 0, max: 20 }),
    maxTotalBytes: fc.integer({ min: 0, max: 40 }),
    names: fc.constant(LIMITS.names),
  });
  const scenario = fc
    .record({
      inputs: inputsOf,
      made: fc.uniqueArray(fc.record({ path, size: fc.nat({ max: 25 }) }), { selector: (made) => made.path }),
      limits: limitsOf,
    })
    .map(({ inputs, made, limits }) => {
      const staged = inputs.map(({ name, readOnly }, at) => input(at + 1, name, readOnly));
      const fates = inputs.map(({ fate }) => fate);
      const states = ["unchanged", "changed"] as const;
      const files = staged.flatMap(({ index, ref }, at) => {
        const state = states[fates[at] as number];
        return state === undefined ? [] : [file(ref.name, at, state, index)];
      });
      const taken = new Set(files.map((each) => each.path));
      const fresh = made.filter((each) => !taken.has(each.path)).map((each) => file(each.path, each.size));
      const missing = staged.filter((_, at) => fates[at] === 2).map(({ index }) => index);
      const kept = staged.filter((_, at) => fates[at] === 3).map(({ index }) => index);
      return { staged, limits, listing: { ...NOTHING, files: [...files, ...fresh], missing, kept } };
    });

  it("every candidate is stored or omitted, never both, never neither", () => {
    fc.assert(
      fc.property(scenario, ({ listing, staged, limits }) => {
        const { uploads, omitted } = planOutputs(listing, staged, limits);
        const readOnly = new Set(staged.filter((each) => each.readOnly).map(({ ref }) => ref.name));
        const candidates = listing.files.filter(
          ({ state, path }) => state !== "unchanged" && !readOnly.has(path),
        );
        expect([...namesOf(uploads), ...namesOf(omitted)].sort()).toEqual(
          candidates.map((each) => each.path).sort(),
        );
      }),
      { numRuns: 1000 },
    );
  });

  it("no limit is passed", () => {
    fc.assert(
      fc.property(scenario, ({ listing, staged, limits }) => {
        const { uploads } = planOutputs(listing, staged, limits);
        expect(uploads.length).toBeLessThanOrEqual(limits.maxFiles);
        for (const { size } of uploads) expect(size).toBeLessThanOrEqual(limits.maxFileBytes);
        expect(uploads.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(limits.maxTotalBytes);
      }),
    );
  });

  it("every input is inherited, changed, or deleted, at most one of them; read-only ones are inherited", () => {
    fc.assert(
      fc.property(scenario, ({ listing, staged }) => {
        const result = planOutputs(listing, staged, LIMITS);
        const inherited = new Set(namesOf(result.inherited));
        const deleted = new Set(result.deleted);
        const changed = new Set([
          ...result.uploads.filter(({ modifiedFrom }) => modifiedFrom !== undefined).map(({ name }) => name),
          ...namesOf(result.omitted),
        ]);
        for (const { ref, readOnly } of staged) {
          const places = [inherited, deleted, changed].filter((place) => place.has(ref.name));
          if (readOnly) expect(places).toEqual([inherited]);
          else if (!deleted.has(ref.name)) expect(places).toHaveLength(1);
        }
      }),
    );
  });

  it("what is reported could be staged together again, inherited inputs in the order they came", () => {
    fc.assert(
      fc.property(scenario, ({ listing, staged }) => {
        fc.pre(findPathConflict(staged.map(({ ref }) => ref.name)) === undefined);
        const fresh = listing.files.filter(({ state }) => state === "new").map((each) => each.path);
        fc.pre(findPathConflict(fresh) === undefined);
        const { uploads, inherited } = planOutputs(listing, staged, LIMITS);
        const stood = staged.filter(({ readOnly, index }) => !readOnly && !listing.missing.includes(index));
        fc.pre(findPathConflict([...new Set([...fresh, ...stood.map(({ ref }) => ref.name)])]) === undefined);
        expect(findPathConflict([...namesOf(uploads), ...namesOf(inherited)])).toBeUndefined();
        const order = staged.map(({ ref }) => ref).filter((ref) => inherited.includes(ref));
        expect(inherited).toEqual(order);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the cost of names", () => {
  const prefix = `${"d".repeat(250)}/`.repeat(15);
  const long = (count: number) =>
    Array.from({ length: count }, (_, at) =>
      file(`${prefix}${String(count - at).padStart(5, "0")}${"x".repeat(230)}`),
    );
  const short = (count: number) => Array.from({ length: count }, (_, at) => file(`${count - at}.txt`));
  const msOf = (files: readonly ListedFile[]) => {
    const times = Array.from({ length: 5 }, () => {
      const before = process.threadCpuUsage();
      plan({ files: [...files] });
      // Of this thread alone: other work on the machine does not count.
      return process.threadCpuUsage(before).user / 1000;
    });
    return times.reduce((least, ms) => Math.min(least, ms));
  };

  it("of 10,000 files with names of 4,000 characters is no more than for ordinary ones", () => {
    const [many, ordinary] = [long(10_000), short(10_000)];
    expect(many.every(({ path }) => path.length >= 4000)).toBe(true);
    msOf(ordinary);
    expect(msOf(many)).toBeLessThan(2 * Math.max(msOf(ordinary), 1));
  });

  it("that are too long is their omission, behind the names that can be told in order", () => {
    const paths = ["b".repeat(300), "z.txt", `${"a".repeat(200)}/`.repeat(5), "a.txt"];
    const { uploads, omitted } = plan({ files: paths.map((path) => file(path)) });
    expect(namesOf(uploads)).toEqual(["a.txt", "z.txt"]);
    expect(omitted).toEqual([
      { name: paths[0], reason: "name" },
      { name: paths[2], reason: "name" },
    ]);
  });
});
