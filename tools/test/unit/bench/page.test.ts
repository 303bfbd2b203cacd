import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { CHARTS, drawings, numbersPage, type Sources } from "@svc/tools/bench/page";
import { publish, readSources } from "@svc/tools/bench/publish";
import { asJson, type Result, readResult, writeResult } from "@svc/tools/bench/result";
import type { SoakResult } from "@svc/tools/bench/soak/run";
import { describe, expect, it } from "vitest";
import { around, NOTHING, resultOf } from "./support.ts";

const result = resultOf({
  warm: { ...NOTHING, bare: { python: around(10) }, scenarios: { "hello-python": around(8) } },
});

function inFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-test-"));
  try {
    work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("a result", () => {
  it("is read as it was written, with its samples on one line", () => {
    inFolder((folder) => {
      const path = join(folder, "results", "one.json");
      writeResult(path, result);
      expect(readResult<Result>(path, "bench")).toEqual(result);
    });
    expect(asJson(result).split("\n").length).toBeLessThan(80);
  });

  it("is refused where another kind is wanted", () => {
    inFolder((folder) => {
      const path = join(folder, "one.json");
      writeResult(path, result);
      expect(() => readResult<SoakResult>(path, "soak")).toThrow("is no result of soak");
    });
  });

  it("is refused when another version wrote it", () => {
    inFolder((folder) => {
      const path = join(folder, "one.json");
      writeFileSync(path, JSON.stringify({ ...result, version: 3 }));
      expect(() => readResult<Result>(path, "bench")).toThrow("is no result of bench of this version");
    });
  });
});

describe("the page", () => {
  const sources: Sources = { bench: { result, path: "a.json" }, others: [] };

  it("says what was measured, where, and how to repeat it", () => {
    const page = numbersPage(sources);
    for (const fact of [
      "A CPU",
      "2 cores",
      "kernel 6.1",
      "python 3.11.2",
      "`./svc bench` (n = 10, 60 s in all)",
      'Mode "warm"',
      "`PYTHON_CONCURRENCY=8`",
      "| hello-python, p50 against bare python | 0.80 x |  | at most 1.00 x | yes |",
      "| print(1) in Python | 8.0 ms | 10.0 ms | 1.3 times as fast |",
      "![hello-python: print(1)](numbers/hello-python.svg)",
    ]) {
      expect(page).toContain(fact);
    }
  });

  it("says what sessions add where the result has them, and is made of older results too", () => {
    const sessions = [
      { state: "a file of 1 MB", changed: false, stored: 1_000_000, ms: around(20), withoutMs: around(8) },
    ];
    const measured = { ...NOTHING, sessions };
    const page = numbersPage({ bench: { result: resultOf({ warm: measured }), path: "a.json" }, others: [] });
    expect(page).toContain("## Sessions (warm)\n");
    expect(page).toContain("| a file of 1 MB | nothing | 41 | 8.0 | 20.0 | +12.0 ms |");
    expect(numbersPage(sources)).not.toContain("## Sessions");
  });

  it("has a chapter for each part that was measured apart, with its conditions and without targets", () => {
    const sessions = [
      { state: "a file of 1 MB", changed: false, stored: 1_000_000, ms: around(20), withoutMs: around(8) },
    ];
    const part = { ...resultOf({ warm: { ...NOTHING, sessions } }), command: "./svc bench sessions" };
    const page = numbersPage({
      bench: { result, path: "a.json" },
      others: [{ result: part, path: "b.json" }],
    });
    expect(page).toContain("Generated from a.json b.json by ./svc bench --page a.json b.json;");
    const [, chapter = ""] = page.split("\n# Measured apart\n");
    expect(chapter).toContain("- Command: `./svc bench sessions` (60 s)");
    expect(chapter).toContain("| a file of 1 MB | nothing | 41 | 8.0 | 20.0 | +12.0 ms |");
    expect(chapter).not.toContain("Targets");
    expect(page.split("A CPU")).toHaveLength(3);
  });

  it("says when the machine was busy", () => {
    const busy = { ...result, conditions: { ...result.conditions, loadBefore: 2.1 } };
    expect(numbersPage(sources)).not.toContain("did other work");
    expect(numbersPage({ bench: { result: busy, path: "a.json" }, others: [] })).toContain("did other work");
  });

  it("is written with its charts, and nothing else stays among them", () => {
    inFolder((folder) => {
      publish(sources, folder);
      writeFileSync(join(folder, CHARTS, "old.svg"), "");
      publish(sources, folder);
      expect(readdirSync(join(folder, CHARTS))).toEqual(["hello-python.svg"]);
      expect(readFileSync(join(folder, "numbers.md"), "utf8")).toBe(numbersPage(sources));
    });
  });
});

describe("docs/numbers.md", () => {
  const page = readFileSync(join(ROOT, "docs/numbers.md"), "utf8");
  const paths = (/^<!-- Generated from (.+) by /.exec(page)?.[1] ?? "").split(" ");
  const sources = readSources(paths.map((path) => join(ROOT, path)));

  it("is what its results generate", () => {
    expect(page).toBe(numbersPage(sources));
  });

  it("has the charts of its results, and no others", () => {
    const folder = join(ROOT, "docs", CHARTS);
    const expected = drawings(sources);
    expect(readdirSync(folder).toSorted()).toEqual(expected.map(({ name }) => `${name}.svg`).toSorted());
    for (const { name, svg } of expected) expect(readFileSync(join(folder, `${name}.svg`), "utf8")).toBe(svg);
  });

  it("comes from committed results", () => {
    const names = readdirSync(join(ROOT, "bench/results")).filter((name) => name.endsWith(".json"));
    for (const file of paths) {
      expect(names.map((name) => `bench/results/${name}`)).toContain(file);
    }
  });
});
