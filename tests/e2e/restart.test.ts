/** `./svc status` and `./svc restart`: what an operator sees, and that callers notice nothing. */

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createConnection } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { Status } from "@svc/cli/status/status";
import { versionOf } from "@svc/cli/version";
import type { ExecResponse } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { IN_GUESTS, RUNNER, SANDBOX } from "@svc/test-kit/system/guests";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { declare, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FreshConnections } from "./support/fresh-connections.ts";
import { MixedLoad } from "./support/mixed-load.ts";
import { privateFolder, svc } from "./support/svc.ts";

const CALLERS = 4;
let system: System;
beforeAll(async () => {
  // As by default, on an ordinary machine.
  const waits = { SHUTDOWN_GRACE_MS: `${slow(30_000)}`, JOB_QUEUE_WAIT_MS: `${slow(60_000)}` };
  system = await startSystem({ env: { ...OPEN_PROGRAM_LIMITS, ...waits, SVC_PERSIST_SESSIONS: "true" } });
});
afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const command = (...args: string[]) => svc(args, system.environment);
const pids = () =>
  Object.fromEntries(system.state().components.map(({ name, process }) => [name, process?.pid]));

interface Answer {
  status: number;
  body: ExecResponse;
}

/** On a connection of its own. Rejects when it is refused or broken off. */
function execute(code: string, args: string[] = []): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const sent = request(`${system.url}/exec`, { method: "POST", agent: false, headers }, (response) => {
      json(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, body: body as ExecResponse }),
        reject,
      );
    });
    sent.once("error", reject);
    sent.end(JSON.stringify({ lang: "bash", code, args }));
  });
}

/** A call whose program has begun and takes some time. */
async function holding(): Promise<{ answer: Promise<Answer> }> {
  const marker = newMarker();
  const answer = execute('python3 -c "import time; time.sleep(3)" $1; echo end', [marker]);
  answer.catch(() => undefined);
  await until(() => processesWith(marker).length > 0, slow(20_000));
  return { answer };
}

/** Calls one after the other until the work is done; answers what was not as it should be. */
async function callingDuring<T>(
  work: Promise<T>,
): Promise<{ result: T; calls: number; failures: unknown[] }> {
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  const failures: unknown[] = [];
  let calls = 0;
  const caller = async (): Promise<void> => {
    while (!isDone) {
      const at = String(calls++);
      await execute("sleep 0.2; echo $1", [at]).then(
        ({ status, body }) => {
          if (status !== 200 || body.stdout !== `${at}\n`) failures.push({ status, body });
        },
        (error) => failures.push(error),
      );
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return { result: await ended, calls, failures };
}

describe("./svc status", () => {
  it("says what runs, where, and how it does; exit code 0 when it is ready", async () => {
    const { code, stdout } = await command("status", "--json");
    expect(code).toBe(0);
    const status = JSON.parse(stdout) as Status;
    expect(status).toMatchObject({
      status: "ready",
      url: system.url,
      mode: expect.stringContaining("no authentication"),
      pid: system.supervisorPid,
      background: false,
      version: versionOf(),
      installed: versionOf(),
      slots: { running: expect.any(Number), paused: 0, total: system.state().slots },
      queues: { python: { waiting: 0 }, other: { waiting: 0 } },
    });
    if (status.status === "not_running") throw new Error("it runs");
    expect(status.components.map(({ name, state }) => [name, state]).sort()).toEqual(
      ["api", "egress-gateway", "file-server", "redis", ...SANDBOX, "tool-call-server", "worker"]
        .sort()
        .map((name) => [name, "ready"]),
    );
    for (const { name, pid } of status.components) expect(pid).toBe(system.pid(name as "api"));
    const text = (await command("status")).stdout;
    for (const part of [
      /^status +ready$/m,
      /^address .*\(no authentication/m,
      new RegExp(`^${RUNNER} +\\d+ {2}ready$`, "m"),
    ])
      expect(text).toMatch(part);
  });

  it("exits with 3 where nothing runs, and refuses an offset that is not the copy's", async () => {
    const { environment, remove } = await privateFolder();
    const none = await svc(["status"], environment);
    expect(none).toMatchObject({ code: 3, stdout: expect.stringMatching(/^Not running on /) });
    expect(await svc(["restart"], environment)).toMatchObject({ code: 3, stdout: "" });
    remove();
    for (const name of ["status", "restart", "down"]) {
      const { code, stderr } = await command(name, "--port-offset", "1");
      expect([name, code]).toEqual([name, 2]);
      expect(stderr).toContain("--port-offset 1 differs from the copy in");
    }
    expect((await command("status")).code).toBe(0);
  });
});

describe("./svc restart", () => {
  it("replaces every process but Redis and jaild, and no program, file, session or paused program is lost", async () => {
    const before = pids();
    const api = new FreshConnections(system.url);
    const tools = { add: ({ a, b }: { a: number; b: number }) => a + b };
    const code = "print(1)\nprint(await add(a=1, b=2))\n";
    const paused = await startPaused(api, { code, language: "python", tools: declare(["add"]) });
    const load = new MixedLoad(api, { sessions: true });
    await load.onceMore();
    load.during("during the restart");
    const result = await command("restart");
    load.during("after the restart");
    if (load.failures.length === 0) await load.onceMore();
    await load.end();
    expect(load.failures).toEqual([]);
    const { answer } = await driveOn(api, paused, tools);
    expect(answer).toMatchObject({ status: "completed", stdout: "1\n3\n", tool_calls_made: 1 });
    expect(result.code, result.stderr).toBe(0);
    expect(result.stdout).toBe(`Restarted: ${system.url}\n`);
    expect(result.stderr).toMatch(
      new RegExp(`${RUNNER} finishes[\\s\\S]+${RUNNER} is ready[\\s\\S]+finishes`),
    );
    const kept = Object.entries(pids()).filter(([name, pid]) => before[name] === pid);
    expect(kept.map(([name]) => name).sort()).toEqual(IN_GUESTS ? ["redis"] : ["jaild", "redis"]);
    expect(JSON.parse((await command("status", "--json")).stdout)).toMatchObject({ status: "ready" });
    for (const { restarts } of system.state().components) expect(restarts).toBe(0);
  });

  it("waits for what was accepted, while new connections wait for the next process", async () => {
    const accepted = await holding();
    const { result, failures } = await callingDuring(command("restart", "api"));
    expect(result.code, result.stderr).toBe(0);
    expect(failures).toEqual([]);
    expect(await accepted.answer).toMatchObject({ status: 200, body: { stdout: "end\n", code: 0 } });
  });

  it("takes one component by its name, and no other", async () => {
    const before = pids();
    expect((await command("restart", RUNNER)).code).toBe(0);
    const { [RUNNER]: _, ...others } = before;
    expect(pids()).toMatchObject(others);
    expect(pids()[RUNNER]).not.toBe(before[RUNNER]);
    for (const [name, code, message] of [
      ["redis", 1, /redis is not restarted alone/],
      ...(IN_GUESTS ? [] : ([["jaild", 1, /jaild is not restarted alone/]] as const)),
      ["wroker", 2, /no component wroker is running; did you mean worker\?/],
    ] as const) {
      const refused = await command("restart", name);
      expect(refused.code).toBe(code);
      expect(refused.stderr).toMatch(message);
    }
    expect(pids()).toMatchObject(others);
  });

  it("says that a settings file written since the start does not count yet, as status does", async () => {
    const file = join(system.instance.dataDir, "svc.env");
    writeFileSync(file, "MAX_REQUESTS=7\n", { mode: 0o600 });
    const told = [await command("restart", "worker"), await command("status")];
    const known = JSON.parse((await command("status", "--json")).stdout);
    rmSync(file);
    expect(told[0]).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        `warning: ${file} was changed after the start and does not count yet: ./svc down`,
      ),
    });
    expect(told[1]?.stdout).toContain(`${file} was changed: it counts after ./svc down`);
    expect(known.changed_settings).toBe(file);
    expect((await command("status")).stdout).not.toContain("svc.env");
  });

  it("says that what the shell sets does not count yet", async () => {
    const env = { ...system.environment, SVC_MAX_CONCURRENT_EXECUTIONS: "3" };
    expect(await svc(["restart", "worker"], env)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        "warning: it keeps the settings of its start; others do not count yet: SVC_MAX_CONCURRENT_EXECUTIONS\n",
      ),
    });
  });

  it("says that other languages and packages need a start, also where no image could have them", async () => {
    for (const asked of ["go", "klingon"]) {
      const told = await svc(["restart", "worker"], { ...system.environment, SVC_LANGUAGES: asked });
      expect(told).toMatchObject({
        code: 0,
        stderr: expect.stringContaining("warning: SVC_LANGUAGES or SVC_PACKAGES ask for other languages"),
      });
    }
    expect((await command("restart", "worker")).stderr).not.toContain("SVC_LANGUAGES");
  });

  it("is done one at a time", async () => {
    const { answer } = await holding();
    const [first, second] = await Promise.all([command("restart"), command("restart")]);
    expect((await answer).status).toBe(200);
    const codes = [first.code, second.code].sort();
    expect(codes).toEqual([0, 1]);
    expect(first.stderr + second.stderr).toContain("a restart is under way");
  });

  it("is nothing for other users, and nothing that is not understood has an effect", async () => {
    const before = pids();
    const socket = createConnection({ path: `${system.instance.runDir}/control.sock` });
    socket.write('{"command":"stop"}\n');
    expect(await json(socket)).toEqual({
      problem: "the supervisor does not understand the request",
      advice: "Use ./svc of the same version.",
      exitCode: 1,
    });
    expect(pids()).toEqual(before);
    const log = readFileSync(`${system.instance.logsDir}/supervisor.log`, "utf8");
    expect(log).toContain(`restarting ${RUNNER}`);
  });
});
