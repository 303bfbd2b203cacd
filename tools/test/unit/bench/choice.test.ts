import { choose, inMode, names } from "@svc/tools/bench/choice";
import { describe, expect, it } from "vitest";

describe("a choice", () => {
  it("is everything in both modes when nothing is named", () => {
    const choice = choose([], undefined);
    expect(choice.modes).toEqual(["warm", "cold"]);
    for (const block of choice.blocks) expect(names()).toContain(block);
    expect(choice.scenarios.length + choice.blocks.size).toBeGreaterThan(20);
  });

  it("is what is named, groups included", () => {
    const { scenarios, blocks } = choose(["programmatic", "burst"], "warm");
    expect(scenarios.map(({ name }) => name)).toContain("calls-20");
    expect(scenarios.map(({ name }) => name)).not.toContain("pandas");
    expect([...blocks].toSorted()).toEqual(["burst", "paused"]);
  });

  it("has only the modes in which something of it is measured", () => {
    expect(choose(["sessions"], undefined).modes).toEqual(["warm"]);
    expect(choose(["sessions", "burst"], undefined).modes).toEqual(["warm", "cold"]);
    expect(() => choose(["sessions", "upload-1mb"], "cold")).toThrow(
      "nothing of sessions, upload-1mb is measured in mode cold; leave out --mode",
    );
  });

  it("names the nearest known word for an unknown one", () => {
    expect(() => choose(["hello-pyton"], undefined)).toThrow("did you mean hello-python?");
    expect(() => choose([], "wram")).toThrow("did you mean warm?");
  });

  it("leaves out cold what no start is part of, and takes fewer samples of what is slow then", () => {
    const cold = inMode(choose([], undefined), "cold");
    expect(cold.scenarios.map(({ name }) => name)).not.toContain("upload-1mb");
    expect(cold.scenarios.find(({ name }) => name === "pandas")?.share).toBeLessThan(1);
    expect([...cold.blocks].toSorted()).toEqual(["burst", "concurrency", "memory"]);
  });
});
