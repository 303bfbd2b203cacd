/** Bodies that no client would send: every JSON type in every field, depth, size, numbers, names and keys beyond all sense. */
import { ERRORS, type ExecResponse } from "@svc/contracts";
import type { Answer } from "@svc/test-kit/system/api";
import { describe, expect, test } from "vitest";
import { besiege } from "../support/hostile.ts";
import { attacker, bystander } from "../support/running.ts";

const LARGEST_ERROR = 16_384;
const JSON_TYPE = { "content-type": "application/json" };
const post = (path: string, body: string) => attacker.send("POST", path, { headers: JSON_TYPE, body });

/** A refusal of the caller's fault that says nothing of the inside. */
function expectRefusal(answer: Answer, what: string): void {
  expect([400, 401, 403, 404, 413, 422], `${what}: ${answer.text.slice(0, 200)}`).toContain(answer.status);
  expect(Object.keys(ERRORS), what).toContain(answer.refusal.error);
  expect(answer.bytes.length).toBeLessThanOrEqual(LARGEST_ERROR);
  expect(answer.text).not.toMatch(/127\.0\.0\.1|node_modules|\.ts:|\bat .+:\d+:\d+/);
}

/** JSON texts of every type, and of what parsers get wrong. */
const VALUES = [
  "null",
  "true",
  "0",
  "-0",
  "-1",
  "0.5",
  "1e400",
  "-1e400",
  "9007199254740993",
  "1e-400",
  '""',
  '"x"',
  '"\\u0000"',
  '"\\ud800"',
  '"__proto__"',
  '"../../etc/passwd"',
  "[]",
  "[null]",
  "[[]]",
  '["x","x"]',
  "{}",
  '{"length":1}',
  '{"toString":1,"valueOf":1,"toJSON":1}',
  '{"__proto__":{"code":"x","lang":"py"}}',
  '{"constructor":{"prototype":{"args":["x"]}}}',
];
const EXEC_FIELDS = [
  "code",
  "lang",
  "language",
  "version",
  "args",
  "stdin",
  "files",
  "run_timeout",
  "timeout",
  "user_id",
  "session_id",
  "runtime_session_hint",
];
const PROGRAM_FIELDS = [
  "code",
  "lang",
  "tools",
  "timeout",
  "files",
  "args",
  "stdin",
  "version",
  "continuation_token",
  "tool_results",
];
const REF_FIELDS = ["id", "storage_session_id", "name", "kind", "resource_id", "version", "entity_id"];

const withField = (base: Record<string, unknown>, field: string, text: string) => {
  const { [field]: _, ...rest } = base;
  return `${JSON.stringify(rest).slice(0, -1)}${Object.keys(rest).length > 0 ? "," : ""}${JSON.stringify(field)}:${text}}`;
};

describe("every JSON type in the field", () => {
  test.each(EXEC_FIELDS)("%s of an execution is taken or refused, and breaks nothing", async (field) => {
    await besiege(async () => {
      for (const text of VALUES) {
        const answer = await post("/exec", withField({ lang: "bash", code: "echo fine" }, field, text));
        if (answer.status === 200) expect(answer.json<ExecResponse>()).toMatchObject({ status: null });
        else expectRefusal(answer, `${field}: ${text}`);
      }
    });
  });

  test.each(PROGRAM_FIELDS)("%s of a program with tools", async (field) => {
    const base = { lang: "bash", code: "echo fine", tools: [{ name: "t" }] };
    await besiege(async () => {
      for (const text of VALUES) {
        const answer = await post("/exec/programmatic", withField(base, field, text));
        if (answer.status !== 200) expectRefusal(answer, `${field}: ${text}`);
      }
    });
  });

  test.each(REF_FIELDS)("%s of a file reference", async (field) => {
    const reference = await attacker.stage("a.txt", "a");
    for (const text of VALUES) {
      const body = `{"lang":"bash","code":"cat *.txt","files":[${withField({ ...reference }, field, text)}]}`;
      const answer = await post("/exec", body);
      if (answer.status !== 200) expectRefusal(answer, `${field}: ${text}`);
    }
  });

  test("and in the place of the whole body, on every route that takes one", async () => {
    for (const path of ["/exec", "/exec/programmatic", "/exec/programmatic/cancel"]) {
      for (const text of VALUES) expectRefusal(await post(path, text), `${path}: ${text}`);
    }
  });
});

describe("a body", () => {
  test.each([
    ["nested a hundred thousand arrays deep", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["nested a hundred thousand objects deep", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`],
    ["that opens a million times and never closes", "[".repeat(1_000_000)],
  ])("%s is an answer, not a fall", async (_name, nested) => {
    await besiege(async () => {
      expectRefusal(await post("/exec", nested), "bare");
      const answer = await post("/exec", `{"lang":"bash","code":"echo fine","unknown":${nested}}`);
      expect([answer.status, answer.refusal.error]).toEqual([400, "invalid_json"]);
      expectRefusal(await post("/exec", `{"lang":"bash","code":"true","args":${nested}}`), "in a field");
      expectRefusal(
        await post("/exec/programmatic", `{"code":"x","tools":[{"name":"t","parameters":${nested}}]`),
        "in a schema",
      );
    });
  });

  test.each([
    ["NaN", '{"lang":"bash","code":"true","run_timeout":NaN}'],
    ["Infinity", '{"lang":"bash","code":"true","run_timeout":Infinity}'],
    ["a hexadecimal number", '{"lang":"bash","code":"true","run_timeout":0x10}'],
    ["a comment", '{"lang":"bash","code":"true"/* */}'],
    ["a comma too many", '{"lang":"bash","code":"true",}'],
    ["single quotes", "{'lang':'bash','code':'true'}"],
    ["two values", '{"lang":"bash","code":"true"}{}'],
    ["a mark of byte order and nothing else", "\ufeff"],
    ["bytes that are no UTF-8", '{"lang":"bash","code":"true"'],
  ])("with %s is no JSON", async (_name, body) => {
    expect((await post("/exec", body)).refusal.error).toBe("invalid_json");
  });

  test("that names a field twice has one of the two, the same for everybody who reads it", async () => {
    const body = '{"lang":"bash","code":"echo first","code":"echo second","args":["a"],"args":["b","c"]}';
    expect((await post("/exec", body)).ok<ExecResponse>()).toMatchObject({ stdout: "second\n" });
  });

  test("with a million keys, or keys of a million characters, is answered in time", async () => {
    await besiege(async () => {
      const keys = Array.from({ length: 1_000_000 }, (_, n) => `"k${n}":0`);
      const body = (count: number) => `{"lang":"bash","code":"echo fine",${keys.slice(0, count).join(",")}}`;
      expect((await post("/exec", body(190_000))).status).toBe(200);
      for (const count of [200_000, 700_000]) {
        expect((await post("/exec", body(count))).refusal.error).toBe("invalid_json");
      }
      expect((await post("/exec", body(1_000_000))).refusal.error).toBe("request_too_large");
      const long = await post("/exec", `{"lang":"bash","code":"echo fine","${"k".repeat(5_000_000)}":0}`);
      expect(long.status).toBe(200);
    });
  });

  test("cannot change what later requests are taken for", async () => {
    for (const key of ["__proto__", "constructor", "prototype"]) {
      for (const value of [
        { args: ["polluted"], stdin: "polluted", run_timeout: 1 },
        { prototype: { args: ["polluted"] } },
      ]) {
        await post("/exec", `{"lang":"bash","code":"true","${key}":${JSON.stringify(value)}}`);
        await post(
          "/exec/programmatic",
          `{"code":"x","tools":[{"name":"t","${key}":${JSON.stringify(value)}}]}`,
        );
      }
    }
    const answer = await bystander.exec({ lang: "bash", code: 'echo $# "$(cat)"' });
    expect(answer).toMatchObject({ stdout: "0 \n", code: 0, status: null });
  });

  test("compressed, or of another character set, is not unpacked", async () => {
    const body = JSON.stringify({ lang: "bash", code: "true" });
    for (const headers of [
      { ...JSON_TYPE, "content-encoding": "gzip" },
      { ...JSON_TYPE, "content-encoding": "deflate, gzip" },
      { "content-type": "application/json; charset=utf-16le" },
    ]) {
      const bytes = Buffer.from(body, headers["content-type"].includes("utf-16") ? "utf16le" : "utf8");
      const answer = await attacker.send("POST", "/exec", { headers, body: new Uint8Array(bytes) });
      expect([200, 400, 415], JSON.stringify(headers)).toContain(answer.status);
      if (answer.status === 200) expect(headers["content-type"]).not.toContain("utf-16");
    }
  });
});

describe("limits of the request", () => {
  const MEMORY = 512 << 20;

  test("are lowered, never raised: no field makes more of time, memory, processes, files or output", async () => {
    const wishes = {
      run_timeout: 10 ** 15,
      run_memory_limit: 10 ** 12,
      memory_limit: 10 ** 12,
      compile_timeout: 10 ** 9,
      max_process_count: 30_000,
      max_open_files: 1_000_000,
      max_file_size: 10 ** 12,
      output_max_size: 10 ** 9,
      limits: { memory: 10 ** 12 },
      env_vars: { LD_PRELOAD: "/tmp/x.so" },
      ptc: { mode: "live" },
    };
    const code = `
import os, resource
print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_FSIZE), os.environ.get("LD_PRELOAD"))
print(open("/proc/meminfo").readline().split()[1])
os.write(1, b"x" * 100_000)`;
    const answer = await attacker.exec({ lang: "py", code, ...wishes });
    expect(answer.stdout).toMatch(/^x{65536}|^\(2048, 2048\)/);
    expect(answer).toMatchObject({ status: "OL" });
    const seen = await attacker.exec({ lang: "py", code: code.replace(/os\.write.*/, ""), ...wishes });
    expect(seen.stdout).toBe(`(2048, 2048) (104857600, 104857600) None\n${MEMORY / 1024}\n`);
  });
});
