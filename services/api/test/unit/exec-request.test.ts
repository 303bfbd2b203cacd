import type { RuntimeInfo } from "@svc/contracts";
import { describe, expect, it } from "vitest";
import { type ExecRules, parseExec } from "../../src/exec/request.ts";
import { FILE_RULES, refNamed, refusal } from "../support/exec-rules.ts";

const INSTALLED: RuntimeInfo[] = [
  { language: "python", version: "3.11.2", aliases: [] },
  { language: "python", version: "3.14.0-rc.1", aliases: [] },
  { language: "bash", version: "5.2.15", aliases: [] },
];
const RULES: ExecRules = {
  defaultRunMs: 60_000,
  maxRunMs: 300_000,
  ...FILE_RULES,
  runtimes: INSTALLED,
};
const MINIMAL = { code: "print(1)", lang: "py" };
const parse = (change: object = {}, rules: Partial<ExecRules> = {}) =>
  parseExec({ ...MINIMAL, ...change }, { ...RULES, ...rules });

const refused = (change: object) => refusal(() => parse(change));

describe("a request", () => {
  it("with code and language alone has the defaults", () => {
    expect(parse()).toEqual({
      language: "python",
      version: "*",
      code: "print(1)",
      args: [],
      run_timeout: 60_000,
      files: [],
    });
  });

  it("may be empty of code", () => {
    expect(parse({ code: "" }).code).toBe("");
  });

  it("takes null for every optional field as absence", () => {
    const nothing = {
      language: null,
      version: null,
      args: null,
      stdin: null,
      files: null,
      run_timeout: null,
      timeout: null,
      user_id: null,
      runtime_session_hint: null,
      session_id: null,
      workspace_instance_id: null,
    };
    expect(parse(nothing)).toEqual(parse());
  });

  it.each([
    { anything: { at: ["all"] } },
    { session_id: 5 },
    { session_id: "no such session" },
    { runtime_session_hint: "bad hint !" },
    { user_id: "another user" },
    { tenantId: "x", principal: {}, output_namespace: "t:user:x", reply_to: "y" },
  ])("ignores what has no meaning here: %j", (change) => {
    expect(parse(change)).toEqual(parse());
  });

  it("keeps code, arguments and stdin exactly", () => {
    const text = 'é🎉\u2028\r\n\t\u0001"""$&';
    const parsed = parse({ code: `${text}\0`, args: ["", text], stdin: `${text}\0` });
    expect(parsed).toMatchObject({ code: `${text}\0`, args: ["", text], stdin: `${text}\0` });
  });

  it("an empty stdin is an empty one, not none", () => {
    expect(parse({ stdin: "" })).toHaveProperty("stdin", "");
    expect(parse()).not.toHaveProperty("stdin");
  });
});

describe("wrong types and ranges", () => {
  it.each([
    [{ code: undefined }, "code"],
    [{ code: null }, "code"],
    [{ code: 5 }, "code"],
    [{ code: ["print"] }, "code"],
    [{ lang: 5 }, "lang"],
    [{ lang: ["py"] }, "lang"],
    [{ language: {} }, "language"],
    [{ version: 3 }, "version"],
    [{ version: "1".repeat(257) }, "version"],
    [{ args: "-x" }, "args"],
    [{ args: {} }, "args"],
    [{ args: ["a", 5] }, "args[1]"],
    [{ args: ["a", null] }, "args[1]"],
    [{ args: ["a\0"] }, "args[0]"],
    [{ args: ["é".repeat(50_001)] }, "args[0]"],
    [{ args: Array(257).fill("") }, "args"],
    [{ stdin: 5 }, "stdin"],
    [{ files: {} }, "files"],
    [{ files: "id" }, "files"],
    [{ run_timeout: 0 }, "run_timeout"],
    [{ run_timeout: -1 }, "run_timeout"],
    [{ run_timeout: 1.5 }, "run_timeout"],
    [{ run_timeout: "1000" }, "run_timeout"],
    [{ run_timeout: true }, "run_timeout"],
    [{ timeout: 0 }, "timeout"],
    [{ user_id: 5 }, "user_id"],
  ])("%j is invalid_request and names %s", (change, path) => {
    const error = refused(change);
    expect(error).toMatchObject({ code: "invalid_request", status: 400 });
    expect(error.details?.map((detail) => detail.path)).toEqual([path]);
    expect(error.message).toContain(path);
  });

  it.each([[[]], ["text"], [5], [null], [undefined], [true]])(
    "a body that is not an object is invalid_json: %j",
    (body) => {
      expect(refusal(() => parseExec(body, RULES)).code).toBe("invalid_json");
    },
  );

  it("the largest allowed arguments are accepted", () => {
    expect(parse({ args: Array(256).fill("x") }).args).toHaveLength(256);
    expect(parse({ args: ["é".repeat(50_000)] }).args[0]).toHaveLength(50_000);
  });
});

describe("the run limit", () => {
  it.each([
    [{ run_timeout: 1 }, 1],
    [{ run_timeout: 1500 }, 1500],
    [{ run_timeout: 300_000 }, 300_000],
    [{ run_timeout: 300_001 }, 300_000],
    [{ run_timeout: 1e300 }, 300_000],
    [{ timeout: 2000 }, 2000],
    [{ run_timeout: 1000, timeout: 2000 }, 1000],
    [{ run_timeout: null, timeout: 2000 }, 2000],
  ])("%j gives %i", (change, limit) => {
    expect(parse(change).run_timeout).toBe(limit);
  });

  it("the default is lowered to the ceiling too", () => {
    expect(parse({}, { maxRunMs: 5000 }).run_timeout).toBe(5000);
  });
});

describe("the language", () => {
  it.each([
    [{ lang: "py" }, "python"],
    [{ lang: "PyThOn3" }, "python"],
    [{ lang: "sh" }, "bash"],
    [{ lang: null, language: "bash" }, "bash"],
    [{ lang: undefined, language: "Shell" }, "bash"],
    [{ lang: "py", language: "bash" }, "python"],
    [{ lang: "py", language: "nonsense" }, "python"],
  ])("%j is %s", (change, language) => {
    expect(parse(change).language).toBe(language);
  });

  it.each([
    { lang: undefined },
    { lang: null },
    { lang: "" },
    { lang: "", language: "py" },
    { lang: null, language: "" },
  ])("%j names none: invalid_request at lang", (change) => {
    expect(refused(change)).toMatchObject({ code: "invalid_request", details: [{ path: "lang" }] });
  });

  const HINT = " The operator's command ./svc up --languages rs adds rust.";

  it.each([
    ...["ruby", "../py", "__proto__", "🐍", "cobol", "x".repeat(100_000)].map((lang) => [lang, ""] as const),
    ["rs", HINT],
    ["rust", HINT],
  ] as const)(
    "%j is unsupported_language, unknown or not installed alike, and the message lists what is installed",
    (lang, hint) => {
      const error = refused({ lang });
      expect(error).toMatchObject({ code: "unsupported_language", status: 400 });
      expect(error.message).toBe(
        `The language is not supported. Installed: python 3.11.2, python 3.14.0-rc.1, bash 5.2.15.${hint}`,
      );
    },
  );

  it.each([
    ["pyhton", "python"],
    ["PYTHON4", "python"],
    ["py ", "py"],
    ["pyton3", "python3"],
    ["bas", "bash"],
  ])("%j is near to %s", (lang, meant) => {
    expect(refused({ lang }).message).toContain(`Did you mean ${meant}? Installed`);
  });

  it.each(["rist", "golnag", "pascal", "b", ""])("nothing that is installed is near to %j", (lang) => {
    expect(refused({ lang }).message).not.toContain("mean");
  });

  it("while nobody knows what is installed, every known language is passed on and others are refused", () => {
    expect(parse({ lang: "rs", version: "9" }, { runtimes: undefined })).toMatchObject({
      language: "rust",
      version: "9",
    });
    expect(refusal(() => parse({ lang: "ruby" }, { runtimes: undefined })).code).toBe("unsupported_language");
  });
});

describe("the version", () => {
  it.each([
    ["", "*"],
    ["*", "*"],
    ["  ", "*"],
    ["x", "x"],
    ["3", "3"],
    [" 3.11 ", "3.11"],
    ["^3.8 || 5", "^3.8 || 5"],
    ["3.14.0-rc.1", "3.14.0-rc.1"],
  ])("%j is accepted as %j", (version, range) => {
    expect(parse({ version }).version).toBe(range);
  });

  it.each(["2", "3.12", "latest", ">=3.14", "3.11.2; x", "🎉"])("no installed version fits %j", (version) => {
    const error = refused({ version });
    expect(error).toMatchObject({ code: "unsupported_version", status: 400 });
    expect(error.message).toContain("python 3.11.2");
    expect(error.message).not.toContain("bash");
  });
});

describe("what is not offered", () => {
  it("an attached workspace is 422", () => {
    expect(refused({ workspace_instance_id: "w" })).toMatchObject({
      code: "stateful_workspace_unsupported",
      status: 422,
    });
  });
});

describe("files", () => {
  it("are part of what is parsed, under the same rules", () => {
    const file = refNamed("a.csv");
    expect(parse({ files: [file] }).files).toEqual([{ ...file, kind: "user" }]);
    expect(refused({ files: [{ ...file, name: "../a" }] }).code).toBe("invalid_file_reference");
    expect(refused({ files: Array(257).fill(file) }).code).toBe("too_many_files");
  });
});
