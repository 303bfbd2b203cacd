/**
 * docs/troubleshooting.md, "Programs do not run, or are slow": each fault is made, seen in the answer or the log with what the page names,
 * and gone after its advice.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { NODE } from "@svc/cli/components";
import { componentEnvironment } from "@svc/cli/environment";
import { ROOT } from "@svc/cli/instance";
import { loadSecrets } from "@svc/cli/secrets";
import type { ExecResponse, FileRef } from "@svc/contracts";
import { builtBundle } from "@svc/test-kit/components/component";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api, type StoredFile } from "@svc/test-kit/system/api";
import { freePort } from "@svc/test-kit/system/free-ports";
import { RUNNER } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect } from "vitest";
import { expectToHeal, withoutJails, withoutRedis, withoutStorage } from "../support/faults.ts";
import { openStore } from "../support/store.ts";
import { type CommandResult, svc } from "../support/svc.ts";
import { expectSaid, provokeEachRow } from "../support/troubleshooting.ts";

const SOON_MS = slow(30_000);
const HEALED_MS = slow(90_000);
/** More than the time in which the API still serves requests on connections that it had accepted. */
const LATE_MS = 2500;
const SETTINGS = { ...OPEN_LIMITS, ...ONE_BY_ONE, PYTHON_CONCURRENCY: "1", JOB_QUEUE_WAIT_MS: "3000" };

let system: System;
let api: Api;
beforeAll(async () => {
  system = await startSystem({ env: SETTINGS });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const command = (...args: string[]): Promise<CommandResult> => svc(args, system.environment);
const refusal = ({ status, refusal: { error } }: Answer) => [status, error];
const hello = { lang: "bash", code: "echo hello" };

/** Sends it until the answer has this code. */
async function expectRefusal(
  send: () => Promise<Answer>,
  expected: readonly [number, string],
): Promise<Answer> {
  let answer: Answer | undefined;
  const isSo = async () => {
    answer = await send();
    return answer.status === expected[0] && answer.refusal.error === expected[1];
  };
  await until(isSo, HEALED_MS, () => answer?.text);
  return answer as Answer;
}

/** The log has the message of a symptom, and the component is the one that the page means. */
async function expectLogged(symptom: string, component: string, withinMs = SOON_MS): Promise<void> {
  let said = "";
  const isSaid = async () => {
    said = (await command("logs", component)).stdout;
    const [, message = ""] = /`([^`]+)`(?= \(log\)| with)/.exec(symptom) ?? [];
    return said.includes(message);
  };
  await until(isSaid, withinMs, () => said.slice(-2000));
}

async function metric(component: "worker" | "runner", name: string): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${system.instance.ports[component]}/metrics`);
  return (await response.text()).split("\n").filter((line) => line.startsWith(name));
}

/** A program that has begun and takes some seconds. */
async function running(lang: string, code: string): Promise<{ answer: Promise<Answer> }> {
  const marker = newMarker();
  const answer = api.tryExec({ lang, code, args: [marker] });
  answer.catch(() => undefined);
  await until(() => processesWith(marker).length > 0, SOON_MS);
  return { answer };
}

const objectPath = ({ id, storage_session_id }: StoredFile) =>
  join(system.instance.dataDir, "objects/sessions", storage_session_id, id);

/** A second worker beside the system's own. Its clock is ahead. */
async function workerAhead(ms: number): Promise<ChildProcess> {
  const variables = componentEnvironment(
    "worker",
    system.instance,
    loadSecrets(system.instance.dataDir),
    SETTINGS,
  );
  const clock = `const now = Date.now; Date.now = () => now() + ${ms};`;
  const args = ["--import", `data:text/javascript,${encodeURIComponent(clock)}`, await builtBundle("worker")];
  const worker = spawn(NODE, args, {
    env: { ...variables, WORKER_HEALTH_PORT: String(await freePort()) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  return worker;
}

/** Programs run on two workers, one of which has the wrong time, until the runner has said so. */
async function withWorkerAhead(ms: number, symptom: string): Promise<string> {
  const worker = await workerAhead(ms);
  try {
    const isSaid = async () => {
      await api.tryExec(hello);
      const { stdout } = await command("logs", "runner");
      const [, message = ""] = /`([^`]+)`/.exec(symptom) ?? [];
      return stdout.includes(message);
    };
    await until(isSaid, HEALED_MS);
  } finally {
    worker.kill("SIGTERM");
    await once(worker, "exit");
  }
  return (await command("logs", "runner")).stdout;
}

/** A request on a connection of its own, but for its end. Answers what ends it, and answers the whole answer. */
function beginRequest(url: string): () => Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const answer = text(socket);
  socket.write("GET /v1/languages HTTP/1.1\r\nHost: 127.0.0.1\r\n");
  return () => {
    socket.write("Connection: close\r\n\r\n");
    return answer;
  };
}

provokeEachRow("Programs do not run, or are slow", {
  "503 `queue_saturated`": async () => {
    const code = "import time; time.sleep(8); print('whole')";
    const { answer: long } = await running("py", code);
    const waiting = api.tryExec({ lang: "py", code: "print(1)" });
    await until(
      async () =>
        (await metric("worker", "svc_queue_jobs")).some((line) => /python.*waiting.* 1$/.test(line)),
      SOON_MS,
    );
    expect(refusal(await waiting)).toEqual([503, "queue_saturated"]);
    expect((await long).ok<ExecResponse>().stdout).toBe("whole\n");
    expect((await api.exec({ lang: "py", code: "print(1)" })).stdout).toBe("1\n");
  },

  "503 `store_unavailable`; `redis connection lost; reconnecting` (log)": () =>
    withoutRedis(system, async () => {
      await expectRefusal(() => api.tryExec(hello), [503, "store_unavailable"]);
      await expectLogged("`redis connection lost; reconnecting` (log)", "api");
      expect(existsSync(join(system.instance.logsDir, "redis.log"))).toBe(true);
    }),

  "503 `storage_unavailable`; `object storage is unavailable` (log)": async () => {
    await withoutStorage(system, async () => {
      const upload = () => api.form("/upload", [{ name: "b.txt", content: "b" }]);
      await expectRefusal(upload, [503, "storage_unavailable"]);
    });
    // Said at its start.
    const incoming = join(system.instance.dataDir, "objects/incoming");
    chmodSync(incoming, 0o500);
    killProcess(system.pid("file-server"));
    await expectLogged("`object storage is unavailable` (log)", "file-server");
    chmodSync(incoming, 0o700);
    await expectToHeal(system);
    const file = await api.stage("owned.txt", "mine");
    const path = objectPath(file);
    const { uid, gid } = statSync(path);
    chownSync(path, 0, 0);
    chmodSync(path, 0o600);
    await expectRefusal(() => api.download(file), [503, "storage_unavailable"]);
    chownSync(path, uid, gid);
    expect((await api.bytes(file)).toString()).toBe("mine");
  },

  "503 `sandbox_setup_failed`": () =>
    withoutJails(system, async () => {
      await expectRefusal(() => api.tryExec(hello), [503, "sandbox_setup_failed"]);
      const { code, stdout } = await command("doctor");
      expect(code).toBe(1);
      expect(stdout).toMatch(/^fail +runner /m);
      expect(existsSync(join(system.instance.logsDir, "jaild.log"))).toBe(true);
    }),

  "503 `starting_up`, `shutting_down`": async () => {
    const store = openStore(system);
    await store.del("svc:runtimes");
    const replica = await startSecondApi(system, SETTINGS);
    const fresh = new Api(replica.url);
    const starting = await fresh.send("GET", "/languages");
    expect(refusal(starting)).toEqual([503, "starting_up"]);
    expect(Number(starting.headers.get("retry-after"))).toBeGreaterThan(0);
    await until(async () => (await fresh.send("GET", "/languages")).status === 200, HEALED_MS);
    store.disconnect();

    const begun = [beginRequest(replica.url), beginRequest(replica.url)] as const;
    await sleep(LATE_MS);
    const stopped = replica.stop();
    const isClosed = () =>
      fetch(`${replica.url}/health`).then(
        () => false,
        () => true,
      );
    // Late requests are served for a moment.
    expect(await begun[0]()).toMatch(/^HTTP\/1\.1 200 /);
    await until(isClosed, SOON_MS);
    await sleep(LATE_MS);
    expect(await begun[1]()).toMatch(/^HTTP\/1\.1 503 [\s\S]*"error":"shutting_down"/);
    expect(await stopped).toBe(0);
    expect((await api.send("GET", "/languages")).status).toBe(200);
  },

  "502 `input_unavailable`": async () => {
    const file = await api.stage("gone.txt", "content");
    const read = (ref: FileRef) => api.tryExec({ lang: "bash", code: "cat gone.txt", files: [ref] });
    rmSync(objectPath(file));
    expect(refusal(await read(file))).toEqual([502, "input_unavailable"]);
    expect((await read(await api.stage("gone.txt", "content"))).ok()).toMatchObject({ stdout: "content" });
  },

  "`retrying the run` (log)": async () => {
    const { answer } = await running("bash", 'python3 -c "import time; time.sleep(3)" $1; echo whole');
    killProcess(system.pid(RUNNER));
    expect((await answer).ok()).toMatchObject({ stdout: "whole\n", code: 0 });
    await expectLogged("`retrying the run` (log)", "worker");
  },

  "`a stalled job was returned to the queue` (log)": async () => {
    const { answer } = await running("bash", 'python3 -c "import time; time.sleep(3)" $1; echo whole');
    killProcess(system.pid("worker"));
    expect((await answer).ok()).toMatchObject({ stdout: "whole\n", code: 0 });
    await expectLogged("`a stalled job was returned to the queue` (log)", "worker");
  },

  "`manifest refused` with `not_yet_valid` (log)": async () => {
    const said = await withWorkerAhead(60_000, "`manifest refused` with `not_yet_valid` (log)");
    expectSaid(said, "`manifest refused` with `not_yet_valid` (log)");
    await expectToHeal(system);
  },

  "`manifest accepted within the clock tolerance` (log)": async () => {
    const symptom = "`manifest accepted within the clock tolerance` (log)";
    expectSaid(await withWorkerAhead(10_000, symptom), symptom);
    await expectToHeal(system);
  },

  "status `ML`, `TO`, `OL` in an answer": async () => {
    const statusOf = async (input: object) => (await api.exec({ ...input })).status;
    expect(
      await statusOf({
        lang: "py",
        code: "x = bytearray(2 * 2**30)\nfor i in range(0, len(x), 4096): x[i] = 1",
      }),
    ).toBe("ML");
    expect(await statusOf({ lang: "bash", code: "sleep 5", run_timeout: 500 })).toBe("TO");
    expect(await statusOf({ lang: "bash", code: "head -c 50000000 /dev/zero | tr '\\0' x" })).toBe("OL");
    expect(readFileSync(join(ROOT, "docs/limits.md"), "utf8")).toMatch(/`ML`[\s\S]*`TO`|`TO`[\s\S]*`ML`/);
    expect(await statusOf({ lang: "bash", code: "sleep 1", run_timeout: 20_000 })).toBe(null);
  },

  "`Fit to run.` and slow all the same": async () => {
    const { code, stdout } = await command("doctor");
    expect(code).toBe(0);
    expectSaid(stdout, "`Fit to run.`");
    const { timings } = await api.exec({ lang: "py", code: "print(1)" });
    expect(timings).toMatchObject({
      queue_ms: expect.any(Number),
      setup_ms: expect.any(Number),
      run_ms: expect.any(Number),
    });
    await api.exec({ lang: "py", code: "print(1)", env: { MODE: "test" } });
    const starts = await metric("runner", "svc_sandbox_starts_total");
    expect(starts.join("\n")).toMatch(/start="cold"/);
  },
});
