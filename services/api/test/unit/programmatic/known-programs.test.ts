import { describe, expect, it } from "vitest";
import { KnownPrograms } from "../../../src/programmatic/known-programs.ts";
import type { Program, Progress } from "../../../src/programmatic/program.ts";

const one = (code: string, state_bytes = 100) => ({
  program: { code } as Program,
  known: { progress: { state_bytes } as Progress, text: code },
});

describe("copies of paused programs", () => {
  it("are given away once, and the latest one counts", () => {
    const programs = new KnownPrograms();
    programs.remember("a", one("1"));
    programs.remember("a", one("2"));
    expect(programs.take("a")).toEqual(one("2"));
    expect(programs.take("a")).toBeUndefined();
  });

  it("of large ones are not kept, nor what was known before", () => {
    const programs = new KnownPrograms();
    programs.remember("a", one("1"));
    programs.remember("a", one("2", 2 ** 20));
    expect(programs.take("a")).toBeUndefined();
  });

  it("are bounded in number: the oldest goes first", () => {
    const programs = new KnownPrograms();
    for (let number = 0; number < 600; number++) programs.remember(String(number), one(String(number)));
    const kept = Array.from({ length: 600 }, (_, number) => programs.take(String(number))).filter(Boolean);
    expect([kept.length, kept.at(-1)?.program.code, kept[0]?.program.code]).toEqual([512, "599", "88"]);
  });
});
