import { checkKept, checkWithout, SESSION_CASES, type SessionAnswer } from "@svc/tools/bench/sessions/cases";
import type { SessionRow } from "@svc/tools/bench/sessions/measure";
import { sessionTable } from "@svc/tools/bench/sessions/tables";
import { describe, expect, it } from "vitest";
import { around, NOTHING } from "./support.ts";

describe("the cases of sessions", () => {
  it("differ from each other, and leave samples", () => {
    const names = SESSION_CASES.map(({ state, changed }) => `${state} ${changed}`);
    expect(new Set(names).size).toBe(names.length);
    for (const { share } of SESSION_CASES) expect(share > 0 && share <= 1).toBe(true);
  });

  it("are files and variables of each size, left as they are and made anew", () => {
    for (const state of ["a file of", "a DataFrame of"]) {
      const sizes = SESSION_CASES.filter((each) => each.state.startsWith(state)).map(
        ({ bytes, changed }) => `${bytes} ${changed}`,
      );
      expect(sizes).toEqual(["1000000 false", "1000000 true", "50000000 false", "50000000 true"]);
    }
  });

  it("run what made the state once more where it changes, and nothing of it otherwise", () => {
    for (const { first, next, changed } of SESSION_CASES) {
      if (changed) expect(next).toBe(first);
      else if (first !== undefined) expect(next).not.toMatch(/urandom|default_rng|EPOCHREALTIME|state = /);
    }
  });
});

describe("an answer", () => {
  const kept: SessionAnswer = {
    code: 0,
    stdout: "found\n",
    session_state_persisted: true,
    session_state_restore_failed: false,
  };

  it("is a sample when the state was there and was kept", () => {
    checkKept(kept, true);
    checkKept({ ...kept, stdout: "nothing\n" }, false);
  });

  it.each([
    ["its program failed", { code: 1 }],
    ["its program found nothing", { stdout: "nothing\n" }],
    ["its state was not kept", { session_state_persisted: false }],
    ["its state did not come back", { session_state_restore_failed: true }],
    ["a variable was dropped", { session_state_dropped: [{ name: "state", reason: "too large" }] }],
  ])("is no sample when %s", (_, difference) => {
    expect(() => checkKept({ ...kept, ...difference }, true)).toThrow("unexpected result");
  });

  it("of a copy without sessions says nothing of them", () => {
    checkWithout({ code: 0, stdout: "nothing\n" });
    expect(() => checkWithout({ ...kept, stdout: "nothing\n" })).toThrow("unexpected result");
    expect(() => checkWithout({ code: 0, stdout: "found\n" })).toThrow("unexpected result");
  });
});

describe("the table of sessions", () => {
  const row = (n: number): SessionRow => ({
    state: "a file of 1 MB",
    changed: true,
    stored: 1_000_500,
    ms: around(50, n),
    withoutMs: around(10, n),
  });
  const rowsOf = (n: number) => sessionTable({ ...NOTHING, sessions: [row(n)] }).rows;

  it("says what a session adds to the median and to p95", () => {
    expect(rowsOf(41)).toEqual([
      ["a file of 1 MB", "all of it", "41", "10.0", "50.0", "+40.0 ms", "10.9", "54.5", "+43.6 ms"],
    ]);
  });

  it("has no p95 where too few samples are beyond it", () => {
    expect(rowsOf(21)[0]?.slice(2)).toEqual(["21", "10.0", "50.0", "+40.0 ms", "", "", ""]);
  });

  it("has no rows where sessions were not measured", () => {
    expect(sessionTable(NOTHING).rows).toEqual([]);
  });
});
