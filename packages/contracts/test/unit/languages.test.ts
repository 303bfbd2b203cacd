import { describe, expect, it } from "vitest";
import { HELLO } from "../../src/hello-programs.ts";
import { findLanguage, installHint, LANGUAGES, queueKindsOf } from "../../src/index.ts";

/** lang, aliases, runner name, entry, compiled, queue: the table of the public interface. */
const TABLE = [
  ["py", "python python3 py3", "python", "main.py", false, "python"],
  ["bash", "sh shell", "bash", "script.sh", false, "other"],
  ["js", "javascript mjs bun bun-js", "javascript", "index.js", false, "other"],
  ["ts", "typescript bun-ts bun-typescript", "typescript", "main.ts", false, "other"],
  ["node", "nodejs node-js node-javascript", "node", "index.js", false, "other"],
  ["c", "gcc", "c", "main.c", true, "other"],
  ["cpp", "c++ cxx g++", "cpp", "main.cpp", true, "other"],
  ["java", "jdk openjdk", "java", "Main.java", true, "other"],
  ["php", "", "php", "main.php", false, "other"],
  ["rs", "rust", "rust", "main.rs", true, "other"],
  ["go", "golang", "go", "main.go", true, "other"],
  ["d", "dlang", "d", "main.d", true, "other"],
  ["f90", "fortran f95 f03 f08", "fortran", "main.f90", true, "other"],
  ["r", "rlang rscript", "r", "main.R", false, "other"],
] as const;

describe("languages", () => {
  it.each(TABLE)(
    "%s is found by each of its names in any case",
    (lang, aliases, runner, entry, compiled, queue) => {
      const names = [lang, runner, ...aliases.split(" ").filter((alias) => alias !== "")];
      for (const name of names) {
        for (const written of [name, name.toUpperCase(), name[0]?.toUpperCase() + name.slice(1)]) {
          expect(findLanguage(written)).toMatchObject({ lang, runner, entry, compiled, queue });
        }
      }
    },
  );

  it("are exactly what the table lists, and no name means two of them", () => {
    expect(LANGUAGES.map(({ lang }) => lang)).toEqual(TABLE.map(([lang]) => lang));
    const names = LANGUAGES.flatMap(({ lang, aliases }) => [lang, ...aliases]);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(["", " py", "py ", "pyhton", "__proto__", "constructor", "toString", "python;", "py\0"])(
    "%j is no language",
    (name) => {
      expect(findLanguage(name)).toBeUndefined();
    },
  );
});

it("languages need the queues that their programs go through", () => {
  expect(queueKindsOf(["python"])).toEqual(["python"]);
  expect(queueKindsOf(["bash", "rust", "python", "node"]).sort()).toEqual(["other", "python"]);
  expect(queueKindsOf(["cobol"])).toEqual([]);
});

describe("the command that adds a language", () => {
  it("keeps what is installed, and names none that always is", () => {
    const installed = ["python", "bash", "javascript", "typescript", "node"];
    expect(installHint("Rust", installed)).toBe("./svc up --languages rs adds rust");
    expect(installHint("rs", [...installed, "go", "c"])).toBe("./svc up --languages c,rs,go adds rust");
  });

  it("does not exist for what is no language", () => {
    expect(installHint("cobol", ["c"])).toBeUndefined();
  });
});

it("has a first program for each language and for no other", () => {
  expect(Object.keys(HELLO).sort()).toEqual(LANGUAGES.map(({ runner }) => runner).sort());
  for (const code of Object.values(HELLO)) expect(code).toContain("hello");
});
