/** API, runner and what comes back from a jail mean the same by a good name. */

import { parseFiles } from "@svc/api/exec/refs";
import { type ExecuteRequest, fileNameProblem, findPathConflict, newId, ServiceError } from "@svc/contracts";
import { hostileName, namesOfBytes } from "@svc/test-kit/storage/hostile-names";
import { thrown } from "@svc/test-kit/thrown";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { programOf } from "../../src/execution/program.ts";
import type { Runtime } from "../../src/execution/runtimes.ts";
import { decodeListing } from "../../src/outputs/listing.ts";
import { planOutputs } from "../../src/outputs/outputs.ts";

const names = { maxLength: 256, maxDepth: 10 };
const limits = { maxFiles: 50, keepsSessions: false, maxFileBytes: 100, maxTotalBytes: 1000, names };
const runtime: Runtime = {
  language: "python",
  version: "3",
  command: ["/bin/true"],
  env: {},
  entry: "main.py",
} as never;
const goodName = hostileName.filter((name) => fileNameProblem(name) === undefined);
const refTo = (name: string) => ({ id: newId(), storage_session_id: newId(), name });

/** The refusal's code, or undefined. */
const refusalOf = (action: () => unknown): string | undefined => thrown(ServiceError, action)?.code;

const atApi = (all: readonly string[]) =>
  refusalOf(() =>
    parseFiles(
      all.map((name) => ({ ...refTo(name), kind: "user" })),
      { maxFiles: 256, keepsSessions: false, names },
    ),
  );

function atRunner(all: readonly string[]): string | undefined {
  const entry = { name: "the entry of this test", content: "" };
  const request = { language: "python", version: "*", files: [entry, ...all.map(refTo)] };
  return refusalOf(() =>
    programOf(
      request as unknown as ExecuteRequest,
      runtime,
      { names, maxFiles: 256 },
      { run: 1000, compile: 2000 },
    ),
  );
}

describe("a caller's names", () => {
  it("are taken by the API exactly when the runner takes them", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(hostileName, goodName), { minLength: 1, maxLength: 3 }), (all) => {
        const good =
          all.every((name) => fileNameProblem(name) === undefined) && findPathConflict(all) === undefined;
        expect([atApi(all) === undefined, atRunner(all) === undefined]).toEqual([good, good]);
      }),
      { numRuns: 3000 },
    );
  });

  it("may be twins that differ in their normal form alone", () => {
    const twins = ["\u00e9.txt", "e\u0301.txt"];
    expect([atApi(twins), atRunner(twins)]).toEqual([undefined, undefined]);
  });
});

describe("a program's names", () => {
  const listed = (paths: readonly Buffer[]) => ({
    files: paths.map((path, number) => ({ number, state: "new" as const, size: 1, path })),
    emptyDirectories: [],
    directories: [],
    symlinks: [],
    kept: [],
    missing: [],
    omitted: [],
    timedOut: false,
    uncompared: false,
    unlisted: 0,
  });

  it("are stored only when a caller may send them back as they are, byte for byte", () => {
    const all = fc.uniqueArray(namesOfBytes, { maxLength: 8, selector: (name) => name.toString("latin1") });
    fc.assert(
      fc.property(all, (paths) => {
        const { uploads, omitted } = planOutputs(decodeListing(listed(paths) as never), [], limits);
        expect(uploads.length + omitted.length).toBe(paths.length);
        const made = new Set(paths.map((path) => path.toString("latin1")));
        for (const { name, number } of uploads) {
          expect(made).toContain(Buffer.from(name).toString("latin1"));
          expect(Buffer.from(name)).toEqual(paths[number as number]);
        }
        if (uploads.length > 0 && findPathConflict(uploads.map(({ name }) => name)) === undefined)
          expect(atApi(uploads.map(({ name }) => name))).toBeUndefined();
        for (const { name } of omitted) expect(JSON.parse(JSON.stringify(name))).toBe(name);
      }),
      { numRuns: 3000 },
    );
  });

  it("that are twins in their normal form are two files", () => {
    const paths = ["\u00e9.txt", "e\u0301.txt"].map((name) => Buffer.from(name));
    expect(planOutputs(decodeListing(listed(paths) as never), [], limits).uploads).toHaveLength(2);
  });
});
