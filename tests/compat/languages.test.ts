/** Every language of the interface, through the public API, in an image that has them all. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RuntimeInfo } from "@svc/contracts";
import { LANGUAGES } from "@svc/contracts/languages";
import { Api, output } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LARGE } from "./large-programs.ts";
import { PARALLEL } from "./parallel-programs.ts";
import { GREETING, PROGRAMS, type Programs } from "./programs.ts";

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({
    env: { ...OPEN_LIMITS, SVC_LANGUAGES: "all", SANDBOX_COMPILE_TIMEOUT: "90000" },
  });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

test("the runner lists every language with the version that the image recorded", async () => {
  const manifest = readFileSync(join(system.instance.image, "runtimes.json"), "utf8");
  const recorded = (JSON.parse(manifest) as { runtimes: RuntimeInfo[] }).runtimes;
  const answer = await fetch(`http://127.0.0.1:${system.instance.ports.runner}/api/v2/runtimes`);
  const listed = (await answer.json()) as RuntimeInfo[];
  expect(listed.map(({ language }) => language).sort()).toEqual(LANGUAGES.map(({ runner }) => runner).sort());
  for (const { language, version } of listed) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(recorded.find((runtime) => runtime.language === language)?.version).toBe(version);
  }
});

const ENDED = { code: 0, signal: null, status: null, message: null };
const INPUT = "contént\n";

describe.each(LANGUAGES)("$lang", ({ lang, runner }) => {
  const programs = PROGRAMS[runner] as Programs;

  test("prints what it is told to, in any script", async () => {
    const answer = await api.exec({ lang, code: programs.hello });
    expect(answer).toMatchObject({ ...ENDED, stdout: GREETING, stderr: "", files: [], language: runner });
  });

  test("gets arguments and input, reads a file and writes one", async () => {
    const input = await api.stage("in.txt", INPUT);
    const args = ["one", "two  words", "drée"];
    const answer = await api.exec({ lang, code: programs.io, args, stdin: "líne\nmore\n", files: [input] });
    expect(answer).toMatchObject({ ...ENDED, stdout: "one|two  words|drée\nlíne\n", stderr: "" });
    expect(answer.files.map(({ name, inherited }) => [name, inherited])).toEqual([
      ["out.txt", undefined],
      ["in.txt", true],
    ]);
    expect((await api.bytes(output(answer, "out.txt"))).toString()).toBe("contént!");
  });

  test("a program that breaks ends with its code and signal", async () => {
    const { code, exit, signal, stderr } = programs.crash;
    const answer = await api.exec({ lang, code });
    const end = signal === undefined ? { signal: null, status: null } : { signal, status: "SG" };
    expect(answer).toMatchObject({ code: exit, ...end, files: [] });
    if (stderr !== undefined) expect(answer.stderr).toContain(stderr);
  });

  test("a program of two files works, and files that it does not need do no harm", async () => {
    const { code, files } = programs.two;
    const refs = await Promise.all(Object.entries(files).map(([name, content]) => api.stage(name, content)));
    const answer = await api.exec({ lang, code, files: refs });
    expect(answer).toMatchObject({ ...ENDED, stdout: "42\n", stderr: "" });
    expect(answer.files.every(({ inherited }) => inherited)).toBe(true);
  });

  test("runs threads or processes, and starts commands", async () => {
    const answer = await api.exec({ lang, code: PARALLEL[runner] });
    expect(answer).toMatchObject({ ...ENDED, stdout: "28\nchild\n", stderr: "", files: [] });
  });
});

test.each(Object.entries(LARGE))(
  "%s that uses much of its library compiles and runs",
  async (lang, program) => {
    const answer = await api.exec({ lang, code: program.code });
    expect(answer).toMatchObject({ code: 0, status: null, stderr: "", stdout: program.stdout });
  },
);

test.each(LANGUAGES.filter(({ compiled }) => compiled))(
  "$lang that does not compile is not run, and the compiler says why",
  async ({ lang, runner }) => {
    const { broken } = PROGRAMS[runner] as Programs;
    const { code, stderr } = broken as NonNullable<Programs["broken"]>;
    const input = await api.stage("in.txt", INPUT);
    const answer = await api.exec({ lang, code, files: [input] });
    expect(answer).toMatchObject({
      status: "CE",
      signal: null,
      message: "Compilation failed",
      stdout: "",
      wall_time: 0,
      files: [{ ...input, inherited: true, size: Buffer.byteLength(INPUT) }],
    });
    expect(answer.code).toBeGreaterThan(0);
    expect(answer.stderr).toMatch(stderr);
    expect(answer.stderr.endsWith("[sandbox] Compilation failed\n")).toBe(true);
  },
);
