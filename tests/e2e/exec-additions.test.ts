/** What requests may also say, and answers also tell: variables, inline files, limits, sizes, fields without effect. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { LanguageInfo } from "@svc/contracts";
import { Api, output, refTo } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const api = new Api(sharedSystem().url);
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
const IGNORED = "x-svc-ignored-fields";

describe("env", () => {
  test("a program reads its variables, and the next one does not", async () => {
    const env = { GREETING: "héllo = wörld\n2", EMPTY: "", PATH: "/mnt/data:/usr/bin:/bin" };
    const code = "import os; print([os.environ.get(n) for n in ('GREETING', 'EMPTY', 'PATH', 'HOME')])";
    const answer = await api.exec({ lang: "py", code, env });
    expect(answer.stdout).toBe(`['héllo = wörld\\n2', '', '/mnt/data:/usr/bin:/bin', '/mnt/data']\n`);
    const next = await api.exec({ lang: "py", code });
    expect(next.stdout).toMatch(/^\[None, None, /);
  });

  test.each(["bash", "js", "ts"])("%s programs have them too", async (lang) => {
    const code = lang === "bash" ? 'echo "$A"' : "console.log(process.env.A)";
    expect((await api.exec({ lang, code, env: { A: "x y" } })).stdout).toBe("x y\n");
  });

  test("variables that steer a loader or interpreter reach the program and nothing around it", async () => {
    const start = "import os; print('startup of', os.getpid() != 0)";
    const env = {
      LD_PRELOAD: "/mnt/data/none.so",
      PATH: "/nowhere",
      PYTHONPATH: "/mnt/data/lib",
      BASH_ENV: "/mnt/data/none",
      HOME: "/",
      TMPDIR: "/nowhere",
    };
    const files = [{ name: "lib/usercustomize_probe.py", content: start }];
    const code = "import usercustomize_probe; open('made.txt', 'w').write('x')";
    const answer = await api.exec({ lang: "py", code, env, files });
    expect(answer).toMatchObject({ code: 0, stdout: "startup of True\n" });
    expect(answer.files.map(({ name }) => name)).toContain("made.txt");
    expect(answer.stderr).toMatch(
      /^ERROR: ld\.so: object '\/mnt\/data\/none\.so' from LD_PRELOAD cannot be preloaded/,
    );
  });

  test.each<[object, string]>([
    [{ SVC_TOKEN: "x" }, "env.SVC_TOKEN"],
    [{ SANDBOX_TOOL_SOCKET: "/x" }, "env.SANDBOX_TOOL_SOCKET"],
    [{ A: "a\0b" }, "env.A"],
    [{ A: 1 }, "env.A"],
    [{ A: "x".repeat(8193) }, "env.A"],
    [{ "A=B": "" }, "env"],
    [Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`A${at}`, ""])), "env"],
    [["A=1"], "env"],
  ])("%j is refused and named", async (env, path) => {
    const answer = await api.tryExec({ lang: "py", code: "", env });
    expect([answer.status, answer.refusal.error]).toEqual([400, "invalid_request"]);
    expect(answer.refusal.message).toMatch(new RegExp(`^${path.replace(".", "\\.")}: `));
  });

  test("a program with tools has them, across a pause", async () => {
    const code =
      "import os\nprint(os.environ['A'])\nawait ask()\nprint(os.environ['A'], open('in.txt').read())";
    const files = [{ name: "in.txt", content: "inline" }];
    const post = (body: object) => api.post("/exec/programmatic", body);
    const first = await post({ code, tools: [{ name: "ask" }], env: { A: "1" }, files, sream: 1 });
    const paused = first.ok<{ status: string; continuation_token: string; tool_calls: { id: string }[] }>();
    expect([paused.status, first.headers.get(IGNORED)]).toEqual(["tool_call_required", "sream"]);
    const tool_results = paused.tool_calls.map(({ id }) => ({ call_id: id, result: null }));
    const ended = (await post({ continuation_token: paused.continuation_token, tool_results })).ok();
    expect(ended).toMatchObject({
      status: "completed",
      stdout: "1\n1 inline\n",
      files: [],
      limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
    });
  });
});

describe("inline files", () => {
  test("text and bytes are staged; only what is new or changed is told, without modified_from", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    const files = [
      { name: "text.txt", content: "é\r\n" },
      { name: "deep/bytes.bin", content: base64(bytes), encoding: "base64" },
      { name: "gone.txt", content: "x" },
      { name: "kept/.dirkeep", content: "" },
    ];
    const code = `
import hashlib, os
print(repr(open("text.txt", newline="").read()), hashlib.sha256(open("deep/bytes.bin", "rb").read()).hexdigest())
print(os.listdir("kept"))
open("text.txt", "a").write("more")
open("new.csv", "w").write("1,2")
os.remove("gone.txt")`;
    const answer = await api.exec({ lang: "py", code, files });
    const hash = createHash("sha256").update(bytes).digest("hex");
    expect([answer.stderr, answer.stdout]).toEqual(["", `'é\\r\\n' ${hash}\n[]\n`]);
    expect(answer.files.map(({ name, modified_from }) => [name, modified_from])).toEqual([
      ["new.csv", undefined],
      ["text.txt", undefined],
    ]);
    expect(answer).not.toHaveProperty("deleted_files");
    expect(output(answer, "new.csv")).toMatchObject({ size: 3, content_type: "text/csv" });
    expect(output(answer, "text.txt")).toMatchObject({ size: 8, content_type: "text/plain" });
  });

  test("beside a stored file, whose size and type the answer knows as well", async () => {
    const made = await api.exec({ lang: "bash", code: "printf '{}' > data.json" });
    const stored = refTo(output(made, "data.json"));
    const files = [{ name: "a.txt", content: "a" }, stored, { name: "main.py", content: "print('helper')" }];
    const answer = await api.exec({ lang: "py", code: "import os; print(sorted(os.listdir()))", files });
    expect(answer.stdout).toContain("'a.txt', 'data.json', 'main.py'");
    expect(answer.files).toEqual([
      expect.objectContaining({
        name: "data.json",
        inherited: true,
        size: 2,
        content_type: "application/json",
      }),
    ]);
  });

  test("a compiled or shell program has them, and they may be executed through an interpreter", async () => {
    const files = [{ name: "lib.sh", content: "greet() { echo hi $1; }" }];
    expect((await api.exec({ lang: "bash", code: ". ./lib.sh; greet you", files })).stdout).toBe("hi you\n");
  });

  test.each<[string, unknown[], number, string, string]>([
    ["climbs out", [{ name: "../x", content: "" }], 400, "invalid_file_reference", "files[0].name"],
    [
      "has another's name",
      [
        { name: "a", content: "" },
        { name: "a/b", content: "" },
      ],
      400,
      "invalid_file_reference",
      "files[0].name",
    ],
    [
      "is no base64",
      [{ name: "a", content: "AA", encoding: "base64" }],
      400,
      "invalid_file_reference",
      "files[0].content",
    ],
    [
      "is too large",
      [{ name: "a", content: "x".repeat(2 ** 20 + 1) }],
      422,
      "request_too_large",
      "files[0].content",
    ],
    ["is not a file at all", [{ name: "a" }], 400, "invalid_file_reference", "files[0]"],
  ])("one that %s is refused and named", async (_what, files, status, code, path) => {
    const answer = await api.tryExec({ lang: "py", code: "", files });
    expect([answer.status, answer.refusal.error]).toEqual([status, code]);
    expect(answer.refusal.details?.[0]?.path).toBe(path);
  });

  test("4 MiB together pass, decoded", async () => {
    const content = base64(Buffer.alloc(2 ** 20, 7));
    const files = [0, 1, 2, 3].map((at) => ({ name: `f${at}`, content, encoding: "base64" }));
    const answer = await api.exec({ lang: "bash", code: "cat f? | wc -c", files });
    expect(answer.stdout.trim()).toBe(String(4 * 2 ** 20));
  });
});

describe("what is told", () => {
  test("the limits that were used: a higher time is lowered", async () => {
    const limitsOf = async (more: object) => (await api.exec({ lang: "bash", code: "true", ...more })).limits;
    expect(await limitsOf({})).toEqual({ run_timeout_ms: 60_000, memory_bytes: 512 << 20 });
    expect(await limitsOf({ run_timeout: 9_999_999 })).toMatchObject({ run_timeout_ms: 300_000 });
    expect(await limitsOf({ run_timeout: 1500 })).toMatchObject({ run_timeout_ms: 1500 });
  });

  test("fields without effect, in answers and in refusals, harmlessly", async () => {
    const body = { lang: "bash", code: "true", timeout_ms: 5, stream: true, "x\r\ny: z": 1 };
    expect((await api.tryExec(body)).headers.get(IGNORED)).toBe("timeout_ms, stream, x??y:?z");
    expect((await api.tryExec({ ...body, lang: "pyhton" })).headers.get(IGNORED)).toContain("stream");
    expect((await api.tryExec({ lang: "bash", code: "true", env: {} })).headers.get(IGNORED)).toBeNull();
  });

  test("what a caller probably meant", async () => {
    const refusal = async (body: Readonly<Record<string, unknown>>) =>
      (await api.tryExec(body)).refusal.message;
    expect(await refusal({ lang: "pyhton", code: "" })).toContain("Did you mean python?");
    expect(await refusal({ lang: "py" })).toBe("code: is required.");
    expect(await refusal({ lang: "py", code: "", args: "a b" })).toBe("args: must be a list of strings.");
    const lost = await new Api(api.url.replace(/\/v1$/, "")).post("/exec", {});
    expect(lost.refusal.message).toBe("There is no such route; did you mean POST /v1/exec?");
  });
});

describe("what can be asked", () => {
  test("the languages, with packages, commands and limits, also as a text", async () => {
    const { languages } = (await api.send("GET", "/languages")).ok<{ languages: LanguageInfo[] }>();
    const python = languages.find(({ name }) => name === "python");
    expect(python).toMatchObject({
      version: expect.stringMatching(/^3\./),
      file_extension: "py",
      status: "ready",
      network: false,
      limits: {
        run_timeout_ms: 60_000,
        memory_bytes: 512 << 20,
        output_bytes: 65_536,
        files: 50,
        file_bytes: 10_000_000,
        processes: 256,
      },
    });
    expect(python?.packages).toContainEqual({ name: "pandas", version: expect.any(String) });
    expect(python?.commands).toContain("jq");
    const text = await api.send("GET", "/languages?format=text");
    expect(text.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(text.text).toMatch(/Languages: python 3[\s\S]*Packages of python: .*pandas[\s\S]*Commands: .*jq/);
    expect(text.bytes.length).toBeLessThan(4096);
    const wrong = await api.send("GET", "/languages?format=xml");
    expect([wrong.status, wrong.refusal.message]).toEqual([400, 'format: must be one of "json", "text".']);
  });

  test("the document of the interface, which is the committed one", async () => {
    const answer = await api.send("GET", "/openapi.json");
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(answer.text).toBe(await readFile(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
  });
});
