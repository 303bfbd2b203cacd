/** What the logs say of a request, from its id to its lines in every component, also after rotations and on a stopped copy. */

import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { Api } from "@svc/test-kit/system/api";
import { RUNNER, SANDBOX } from "@svc/test-kit/system/guests";
import { NO_CANARY, OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { privateFolder, svc } from "./support/svc.ts";

const COMPONENTS = ["api", "worker", RUNNER];
const ROTATIONS = 2;
let system: System;
let api: Api;
let follower: ChildProcess;
let followed = "";

beforeAll(async () => {
  const env = { ...OPEN_LIMITS, ...NO_CANARY, LOG_ROTATE_BYTES: "10k", LOG_ROTATE_KEEP: "100" };
  system = await startSystem({ env });
  api = new Api(system.url);
  follower = spawn(join(ROOT, "svc"), ["logs", "-f", "--json", ...COMPONENTS], {
    env: { ...process.env, ...system.environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  follower.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    followed += chunk;
  });
  await until(() => followed !== "", 20_000);
});
afterAll(async () => {
  follower?.kill();
  expect(await system?.stop()).toEqual([]);
});

interface Line {
  name: string;
  msg: string;
  level: number;
  time: string;
  [field: string]: unknown;
}

const parsed = (text: string): Line[] =>
  text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);

async function logs(...args: string[]): Promise<Line[]> {
  const { stdout, stderr } = await svc(["logs", "--json", ...args], system.environment);
  expect(stderr).toBe("");
  return parsed(stdout);
}

/** The line of the request at the API, and its run's lines at the other components, once they are there. */
async function outcomes(id: string, components: readonly string[]): Promise<[string, unknown][]> {
  const found = async () =>
    (await logs("--request", id))
      .filter(({ msg }) => msg === "request" || msg === "run")
      .map(({ name, outcome }): [string, unknown] => [name, outcome])
      .sort(([one], [other]) => components.indexOf(one) - components.indexOf(other));
  await expect.poll(async () => (await found()).map(([name]) => name)).toEqual(components);
  return found();
}

const named = (id: string) => ({ headers: { "x-request-id": id } });

describe("the id of a request leads to what became of it", () => {
  test("which was a run", async () => {
    expect((await api.exec({ lang: "py", code: "print(1)" }, named("hello"))).stdout).toBe("1\n");
    expect(await outcomes("hello", COMPONENTS)).toEqual(COMPONENTS.map((name) => [name, "success"]));
    const lines = await logs("--request", "hello");
    expect(new Set(lines.map(({ exec_id }) => exec_id).filter(Boolean)).size).toBe(1);
    for (const line of lines.filter(({ msg }) => msg === "run")) {
      expect(line).toMatchObject({
        language: "python",
        setup_ms: expect.any(Number),
        run_ms: expect.any(Number),
      });
    }
  });

  test("which was one of many in a row, so that its grant was prefetched", async () => {
    for (let n = 0; n < 6; n++) await api.exec({ lang: "bash", code: "exit 3" }, named(`row-${n}`));
    expect(await outcomes("row-5", COMPONENTS)).toEqual(COMPONENTS.map((name) => [name, "program_error"]));
    const ids = (await logs("--request", "row-5")).map(({ exec_id }) => exec_id).filter(Boolean);
    expect([ids.length, new Set(ids).size]).toEqual([3, 1]);
  });

  test("which was a refusal", async () => {
    const file = { id: "a".repeat(21), storage_session_id: "b".repeat(21), name: "a.txt" };
    const denied = await api.tryExec({ lang: "py", code: "", files: [file] });
    const wrong = await api.tryExec({ lang: "py", code: 1 });
    expect([denied.status, wrong.status]).toEqual([403, 400]);
    for (const { refusal, status } of [denied, wrong]) {
      expect(await outcomes(refusal.request_id, ["api"])).toEqual([["api", "bad_request"]]);
      const [line] = await logs("--request", refusal.request_id);
      expect(line).toMatchObject({ level: 30, status, error: refusal.error });
    }
  });

  test("which was a cancellation, in each component, without an error", async () => {
    const failed = async () => {
      const response = await fetch(`http://127.0.0.1:${system.instance.ports.worker}/metrics`);
      const count = (await response.text()).matchAll(/^svc_jobs_(failed|cancelled)_total\{[^}]*\} (\d+)$/gm);
      return [...count]
        .map(([, kind, number]) => [kind, Number(number)])
        .filter(([, number]) => number !== 0);
    };
    const client = new AbortController();
    const code = "import time\ntime.sleep(60)";
    const call = api.exec({ lang: "py", code }, { ...named("gone"), signal: client.signal });
    call.catch(() => undefined);
    await expect.poll(() => activeExecutions(system, "running")).toBe(1);
    client.abort();
    await expect(call).rejects.toThrow();
    expect(await outcomes("gone", COMPONENTS)).toEqual(COMPONENTS.map((name) => [name, "cancelled"]));
    const lines = await logs("--request", "gone");
    expect(lines.filter(({ level }) => level > 30)).toEqual([]);
    expect(lines.find(({ msg }) => msg === "request")?.status).toBe(499);
    expect(await failed()).toEqual([["cancelled", 1]]);
    const runner = await fetch(`http://127.0.0.1:${system.instance.ports.runner}/metrics`);
    const executions = await runner.text();
    expect(executions).toContain('svc_sandbox_executions_total{language="python",outcome="cancelled"} 1\n');
    expect(executions).not.toMatch(/outcome="execution_error"\} [1-9]/);
  });
});

test("rotations while requests run lose no line and repeat none, for the files and for a follower", async () => {
  const { logsDir } = system.instance;
  const rotated = (name: string) => readdirSync(logsDir).filter((file) => file.startsWith(`${name}.log.`));
  const before = new Map(COMPONENTS.map((name) => [name, rotated(name).length]));
  const isDone = () =>
    COMPONENTS.every((name) => rotated(name).length >= (before.get(name) ?? 0) + ROTATIONS);
  const ids: string[] = [];
  while (!isDone()) {
    const batch = Array.from({ length: 8 }, (_, n) => `rotated-${ids.length + n}`);
    ids.push(...batch);
    await Promise.all(batch.map((id) => api.exec({ lang: "bash", code: "" }, named(id))));
  }
  const counted = (lines: readonly Line[], name: string) =>
    lines
      .filter((line) => line.name === name && (line.msg === "request" || line.msg === "run"))
      .map(({ request_id }) => String(request_id))
      .filter((id) => id.startsWith("rotated-"))
      .sort();
  const wanted = [...ids].sort();
  for (const name of COMPONENTS) {
    await expect.poll(async () => counted(await logs(name), name)).toEqual(wanted);
    await expect
      .poll(() => counted(parsed(followed.slice(0, followed.lastIndexOf("\n"))), name))
      .toEqual(wanted);
  }
  // The oldest are in rotated files by now.
  expect(await outcomes("hello", COMPONENTS)).toHaveLength(3);
});

test("every line of every component has an ISO time, and all together are in its order", async () => {
  const lines = await logs();
  const times = lines.map(({ time }) => time);
  expect(times.filter((time) => !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time))).toEqual([]);
  expect(times).toEqual([...times].sort());
  expect(new Set(lines.map(({ name }) => name))).toEqual(
    new Set([...COMPONENTS, "file-server", "tool-call-server", "egress-gateway", "redis", ...SANDBOX]),
  );
});

test("a copy that does not run has its logs; what is not there is named", async () => {
  const { environment, instance, remove } = await privateFolder();
  try {
    expect(await svc(["logs"], environment)).toMatchObject({ code: 1, stdout: "" });
    cpSync(system.instance.logsDir, instance.logsDir, { recursive: true });
    const { code, stdout } = await svc(["logs", "--request", "hello"], environment);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      new RegExp(`^\\S+Z ${RUNNER} +info +run request_id=hello exec_id=\\S+ .*outcome=success`, "m"),
    );
    const none = await svc(["logs", "--request", "nowhere"], environment);
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toContain("No line of the request nowhere");
    const unknown = await svc(["logs", "wroker"], environment);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('no component "wroker"; did you mean worker?');
  } finally {
    remove();
  }
});
