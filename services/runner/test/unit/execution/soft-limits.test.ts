import { constants } from "node:os";
import { REACHED_LIMITS, reachedLimitSchema } from "@svc/contracts";
import type { RunEnd, WorkspaceListing } from "@svc/jail-client";
import { reachedLimits, reachedNotes } from "@svc/runner/execution/soft-limits";
import { describe, expect, it } from "vitest";

const END: RunEnd = {
  cause: "exited",
  exitCode: 0,
  signal: 0,
  execErrno: 0,
  wallUs: 1,
  cpuUs: 1,
  memoryPeak: 1,
  stdoutTotal: 0,
  stderrTotal: 0,
  oomKills: 0,
  reached: [],
};
const listing = (state: "new" | "changed" | "unchanged", size: number): WorkspaceListing => ({
  files: [{ number: 0, state, size, mode: 0o644, path: Buffer.from("f") }],
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
const reached = (end: Partial<RunEnd>, files = listing("new", 0)) =>
  reachedLimits({ end: { ...END, ...end }, listing: files }, { fileBytes: 100 });

describe("reachedLimits", () => {
  it("passes on what the jail saw", () => {
    const seen = [{ limit: "processes", value: 20 } as const];
    expect(reached({ reached: seen })).toEqual(seen);
  });

  it.each([
    ["new", 99, false],
    ["new", 100, true],
    ["changed", 100, true],
    ["unchanged", 100, false],
  ] as const)("takes a %s file of %i bytes for one at its limit: %s", (state, size, expected) => {
    expect(reached({}, listing(state, size))).toEqual(expected ? [{ limit: "file_size", value: 100 }] : []);
  });

  it("believes no signal, which a program may send itself", () => {
    expect(reached({ cause: "signaled", signal: constants.signals.SIGXFSZ })).toEqual([]);
  });

  it("knows every limit of the jail by the same name as the public interface, with a note of its own", () => {
    const all = [...REACHED_LIMITS, "file_size"].map((limit) =>
      reachedLimitSchema.parse({ limit, value: 7 }),
    );
    const notes = reachedNotes(all);
    expect(new Set(notes).size).toBe(all.length);
    for (const note of notes) expect(note).toMatch(/\(7 /);
  });
});
