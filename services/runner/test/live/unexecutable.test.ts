/** Interpreters, compilers and compiled programs that cannot be executed, as callers of the runner see it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Answer } from "@svc/test-kit/components/gateway";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packagesWith, requestOf, startSystemOfRunner } from "../support/runner.ts";

const MISSING = ["/usr/bin/not-there", "{entry}"];
const script = (text: string) => ["/bin/bash", "-c", text];
/** Made by the first command where there are two. */
const LANGUAGES: Record<string, [string[], string[]?]> = {
  php: [MISSING],
  go: [MISSING, ["{build}/program"]],
  c: [script("true"), ["{build}/program"]],
  cpp: [script("echo text > {build}/program"), ["{build}/program"]],
  d: [script("mkdir {build}/program; echo x > {build}/program/x"), ["{build}/program"]],
  java: [script("echo class > {build}/Main.class"), MISSING],
  rust: [script("printf '#!/bin/bash\\necho made\\n' > {build}/program"), ["{build}/program"]],
};

const directory = mkdtempSync(join(tmpdir(), "svc-unexecutable-"));
let system: Awaited<ReturnType<typeof startSystemOfRunner>>;
let execute: (language: string, more?: object) => Promise<Answer>;

beforeAll(async () => {
  const runtimes = Object.entries(LANGUAGES).map(([language, [first, second]]) => ({
    ...{ language, version: "1.0.0", entry: "main", env: {}, command: second ?? first },
    ...(second && { compile: { command: first, env: {} } }),
  }));
  system = await startSystemOfRunner();
  const call = await system.startRunner({
    SANDBOX_PACKAGES_DIRECTORY: packagesWith(directory, () => runtimes),
    SANDBOX_REQUIRE_EGRESS_MANIFEST: "false",
  });
  execute = async (language, more = {}) => {
    const grant = await system.gateway.register([]);
    const body = { ...requestOf(grant, "", language), ...more, egress_grant: grant.egressGrantToken };
    return call({
      method: "POST",
      path: "/execute",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  };
});
afterAll(async () => {
  await system?.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe("what cannot be executed", () => {
  it.each([
    ["an interpreter that is not there", "php"],
    ["an interpreter of compiled programs that is not there", "java"],
    ["a compiler that is not there", "go"],
  ])("is no result of the program: %s", async (_what, language) => {
    const answer = await execute(language);
    expect([answer.status, answer.json().error]).toEqual([503, "sandbox_setup_failed"]);
    expect(answer.bytes.toString()).not.toContain("ENOENT");
  });

  it.each([
    ["makes no program", "c", 127, "there is no such file"],
    ["makes one in no format of programs", "cpp", 126, "what it left is in no format of programs"],
    ["makes a directory of its name", "d", 126, "what it left is no file that may be executed"],
  ])("is the program's own fault where its compiler %s, and says so", async (_what, language, code, why) => {
    const answer = await execute(language);
    expect(answer.status, answer.bytes.toString()).toBe(200);
    const stderr = `[sandbox] The compiler made no program that can be executed: ${why} (is the source a library?)\n`;
    expect(answer.json()).toMatchObject({ code, stdout: "", stderr, status: null });
  });

  it("is the request's fault where a variable is too long for a compiler", async () => {
    const answer = await execute("rust", { env_vars: { LONG: "x".repeat(200_000) } });
    expect([answer.status, answer.json().error]).toEqual([400, "invalid_request"]);
  });

  it("leaves alone what can be", async () => {
    expect((await execute("rust")).json()).toMatchObject({ code: 0, stdout: "made\n" });
  });
});
