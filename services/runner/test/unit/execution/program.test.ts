import {
  type ExecuteRequest,
  executeRequestSchema,
  fileNameProblem,
  findPathConflict,
  ServiceError,
  SNAPSHOT_NAME,
} from "@svc/contracts";
import { freeEntryName, programOf } from "@svc/runner/execution/program";
import type { Runtime } from "@svc/runner/execution/runtimes";
import { thrown } from "@svc/test-kit/thrown";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const LIMITS = { names: { maxLength: 256, maxDepth: 10 }, maxFiles: 100 };
const PYTHON: Runtime = {
  language: "python",
  version: "3.11.2",
  entry: "main.py",
  command: ["/usr/bin/python3", "-X", "{entry}", "./{entry}"],
  env: { MPLBACKEND: "Agg", PATH: "/opt/bin", HOME: "/mnt/data", USER: "sandbox" },
};

const request = (change: object = {}): ExecuteRequest =>
  executeRequestSchema.parse({
    language: "python",
    files: [{ name: "main.py", content: "print(1)" }],
    ...change,
  });
const program = (change?: object) => programOf(request(change), PYTHON, LIMITS, MEMORY);
const MEMORY = { run: 1000, compile: 2000 };
const ref = (name: string) => ({ name, id: "object", storage_session_id: "session" });

const refusal = (change: object) => thrown(ServiceError, () => program(change));

describe("what is executed", () => {
  it("the command names the entry wherever it says so, then come the arguments as they are", () => {
    const args = ["", "-x", "{entry}", "$&", "é", "a b"];
    expect(program({ args }).argv).toEqual(["/usr/bin/python3", "-X", "main.py", "./main.py", ...args]);
  });

  it("an entry name with replacement patterns is a plain name", () => {
    expect(program({ files: [{ name: "$&.py", content: "" }] }).argv[2]).toBe("$&.py");
  });

  it.each([
    [undefined, undefined],
    [null, undefined],
    ["", Buffer.alloc(0)],
    ["é\0\r\n", Buffer.from("é\0\r\n")],
  ])("stdin %j is given byte for byte", (stdin, bytes) => {
    expect(program({ stdin }).stdin).toEqual(bytes);
  });

  it.each([
    ["utf8", "é", Buffer.from("é")],
    [null, "é", Buffer.from("é")],
    ["base64", "AP+A", Buffer.from([0, 255, 128])],
    ["base64", "AA==", Buffer.from([0])],
    ["hex", "00fF", Buffer.from([0, 255])],
    ["hex", "", Buffer.alloc(0)],
  ])("content in %s: %j", (encoding, content, bytes) => {
    expect(program({ files: [{ name: "a", content, encoding }] }).contents).toEqual([{ path: "a", bytes }]);
  });

  it.each([
    ["hex", "0"],
    ["hex", "0g"],
    ["base64", "a b"],
    ["base64", "é"],
    ["base64", "=AAA"],
  ])("content that is no %s is refused, not shortened: %j", (encoding, content) => {
    const files = [
      { name: "main.py", content: "" },
      { name: "a", content, encoding },
    ];
    expect(refusal({ files })).toMatchObject({
      code: "invalid_request",
      details: [{ path: "files[1].content" }],
    });
  });
});

describe("the caller's own environment", () => {
  it("comes last and replaces what the runtime sets, whatever its names", () => {
    const own = ["PATH=/mnt/data", "LD_PRELOAD=x=y", "EMPTY="];
    const before = program().env;
    const made = program({ env: own });
    expect(made.env.slice(-3)).toEqual(own);
    expect(made.env.slice(0, -3)).toEqual(before.filter((variable) => !variable.startsWith("PATH=")));
    expect([program().hasOwnEnvironment, made.hasOwnEnvironment]).toEqual([false, true]);
  });

  it.each([[["=x"]], [["A"]], [["A=\0"]], [["1A=x"]], [Array.from({ length: 65 }, (_, at) => `A${at}=`)]])(
    "what no worker sends is refused: %j",
    (env) => {
      expect(() => program({ env })).toThrow();
    },
  );
});

describe("which files are staged", () => {
  it("an inline .dirkeep makes its directory, and the workspace's is there", () => {
    const kept = ["a/b/.dirkeep", ".dirkeep"].map((name) => ({ name, content: "x" }));
    const made = program({ files: [{ name: "main.py", content: "" }, ...kept] });
    expect(made.contents.map(({ path }) => path)).toEqual(["main.py"]);
    expect(made.plainDirectories).toEqual(["a/b"]);
  });

  it("the first one with content is the entry; the others are staged or fetched under their names", () => {
    const files = [
      ref("data.csv"),
      { name: "run.py", content: "1" },
      { name: "lib.py", content: "2" },
      ref("d/.dirkeep"),
    ];
    const made = program({ files });
    expect(made.argv[2]).toBe("run.py");
    expect(made.contents.map(({ path }) => path)).toEqual(["run.py", "lib.py"]);
    expect(made.references).toEqual([{ ...ref("data.csv"), at: 0 }]);
    expect(made.directories).toEqual([{ ...ref("d/.dirkeep"), at: 3 }]);
  });

  it("without any content there is nothing to run", () => {
    expect(refusal({ files: [ref("data.csv")] })).toMatchObject({
      code: "invalid_request",
      details: [{ path: "files" }],
    });
  });

  it.each(["../x", "/etc/passwd", "a//b", "a/./b", "", "a\0b", "a\\b", "x/"])(
    "the name %j is refused with its place",
    (name) => {
      const refused = refusal({ files: [{ name: "main.py", content: "" }, ref("ok"), ref(name)] });
      expect(refused).toMatchObject({
        code: "invalid_file_reference",
        status: 400,
        details: [{ path: "files[2].name" }],
      });
    },
  );

  it.each([
    [
      ["a", "a"],
      [1, 2],
    ],
    [
      ["a/b", "a"],
      [1, 2],
    ],
    [
      ["x", "a", "y", "a/b/c"],
      [2, 4],
    ],
  ])("the conflicting names %j are refused with both places", (names, places) => {
    const refused = refusal({ files: [{ name: "main.py", content: "" }, ...names.map(ref)] });
    expect(refused?.code).toBe("invalid_file_reference");
    expect(refused?.details?.map(({ path }) => path)).toEqual(places.map((at) => `files[${at}].name`));
  });

  it("takes as many inputs as are allowed, beside the entry and the snapshot of a session", () => {
    const inputs = Array.from({ length: LIMITS.maxFiles }, (_, at) => ref(`in-${at}`));
    const files = [{ name: "main.py", content: "" }, ...inputs];
    expect(program({ files }).references).toHaveLength(LIMITS.maxFiles);
    const persist_session = { file_id: "f".repeat(21), filename: SNAPSHOT_NAME, restore: true };
    expect(program({ files: [...files, ref(SNAPSHOT_NAME)], persist_session }).references).toHaveLength(
      LIMITS.maxFiles,
    );
    expect(refusal({ files: [...files, ref("one more")] })).toMatchObject({
      code: "too_many_files",
      status: 400,
    });
  });

  it("an entry below another file is refused too", () => {
    const refused = refusal({ files: [{ name: "a/main.py", content: "" }, ref("a")] });
    expect(refused?.details?.map(({ path }) => path)).toEqual(["files[0].name", "files[1].name"]);
  });

  it("an input with the entry's name keeps it", () => {
    const made = program({ files: [{ name: "main.py", content: "" }, ref("main.py"), ref("main_1.py/x")] });
    expect(made.argv[2]).toBe("main_2.py");
    expect(made.contents[0]?.path).toBe("main_2.py");
    expect(made.references.map(({ name }) => name)).toEqual(["main.py", "main_1.py/x"]);
  });

  it("no two staged paths ever exclude each other, whatever is asked for", () => {
    const name = fc
      .array(fc.constantFrom("main.py", "main_1.py", "main_2.py", "a"), { minLength: 1, maxLength: 2 })
      .map((segments) => segments.join("/"));
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 6 }), (names) => {
        fc.pre(findPathConflict(names) === undefined);
        const made = program({ files: [{ name: "main.py", content: "" }, ...names.map(ref)] });
        const staged = [
          ...made.contents.map(({ path }) => path),
          ...made.references.map((each) => each.name),
        ];
        expect(findPathConflict(staged)).toBeUndefined();
        expect(made.references.map((each) => each.name)).toEqual(names);
      }),
    );
  });
});

describe("freeEntryName", () => {
  it.each([
    ["main.py", [], "main.py"],
    ["main.py", ["main.py"], "main_1.py"],
    ["main.py", ["main.py/x"], "main_1.py"],
    ["main.py", ["x/main.py", "main.pyc"], "main.py"],
    ["main", ["main"], "main_1"],
    [".bashrc", [".bashrc"], ".bashrc_1"],
    ["a.b/main", ["a.b/main"], "a.b/main_1"],
    ["main.py", ["main.py", "main_1.py", "main_3.py"], "main_2.py"],
  ])("%s beside %j is %s", (wanted, others, name) => {
    expect(
      freeEntryName(
        wanted,
        others.map((each) => ({ name: each })),
      ),
    ).toBe(name);
    expect(fileNameProblem(name)).toBeUndefined();
  });
});

describe("the environment", () => {
  const env = (env_vars: object) =>
    Object.fromEntries(program({ env_vars }).env.map((line) => line.split(/=(.*)/s)));

  it("has the runtime's own and what the request adds", () => {
    expect(env({ API_KEY: "a=b\nc" })).toMatchObject({
      HOME: "/mnt/data",
      USER: "sandbox",
      PATH: "/opt/bin",
      MPLBACKEND: "Agg",
      API_KEY: "a=b\nc",
    });
  });

  it.each([
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "NODE_OPTIONS",
    "BASH_ENV",
    "ENV",
    "IFS",
    "SHELLOPTS",
    "PERL5LIB",
    "JAVA_TOOL_OPTIONS",
    "GCONV_PATH",
    "MALLOC_CHECK_",
    "OPENSSL_CONF",
  ])("%s steers the loader or an interpreter and is dropped", (name) => {
    expect(env({ [name]: "x" })).not.toHaveProperty(name);
  });

  it.each(["PATH", "HOME", "TMPDIR", "USER", "MPLBACKEND"])("%s stays ours", (name) => {
    expect(env({ [name]: "/evil" })[name]).not.toBe("/evil");
  });

  it.each(["1A", "A-B", "", "A B", "A=B", "é", "A\n"])("the name %j is refused", (name) => {
    expect(refusal({ env_vars: { [name]: "x" } })).toMatchObject({
      code: "invalid_request",
      details: [{ path: "env_vars" }],
    });
  });

  it("a value with NUL, and more than a million bytes in all, are refused", () => {
    expect(refusal({ env_vars: { A: "a\0b" } })?.code).toBe("invalid_request");
    expect(refusal({ env_vars: { A: "é".repeat(500_000) } })?.code).toBe("invalid_request");
    expect(env({ A: "é".repeat(499_998) }).A).toHaveLength(499_998);
  });
});

describe("what a runtime leaves open", () => {
  const COMPILED: Runtime = {
    ...PYTHON,
    command: ["{build}/program", "-m{memory:60}", "{entry}", "{other}", "{memory:x}"],
    env: { LIMIT: "{memory:50}B" },
    compile: { command: ["/cc", "{entry}", "{build}/program", "{memory:10}"], env: { CACHE: "/tmp" } },
  };
  const compiled = (change?: object) => programOf(request(change), COMPILED, LIMITS, MEMORY);

  it("is filled with the entry, the build directory, and shares of each jail's own memory limit", () => {
    const { argv, env, compile, made } = compiled({ args: ["{entry}", "{memory:60}"] });
    expect(argv).toEqual([
      ...["/mnt/data/.build/program", "-m600", "main.py", "{other}", "{memory:x}"],
      ...["{entry}", "{memory:60}"],
    ]);
    expect(env).toContain("LIMIT=500B");
    expect(compile).toEqual({
      argv: ["/cc", "main.py", "/mnt/data/.build/program", "200"],
      env: ["CACHE=/tmp"],
      build: ".build",
    });
    expect(made).toEqual([]);
  });

  it.each([
    [".build", ".build_1"],
    [".build/deep/file", ".build_1"],
    [".builder", ".build"],
  ])("an input %s makes the build directory %s", (name, build) => {
    const files = [{ name: "main.py", content: "" }, ref(name)];
    expect(compiled({ files }).compile?.build).toBe(build);
  });

  it("lies in a session where no earlier run can have left anything", () => {
    const persist_session = { file_id: "s".repeat(21), filename: SNAPSHOT_NAME, restore: false } as const;
    const { argv, compile } = compiled({ persist_session });
    expect(compile?.build).toBe(`.build-${"s".repeat(21)}`);
    expect(argv[0]).toBe(`/mnt/data/${compile?.build}/program`);
  });

  it("is nothing for languages whose sources are run as they are", () => {
    expect(program().compile).toBeUndefined();
  });
});
