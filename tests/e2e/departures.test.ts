/** Clients that leave and requests that cannot start: nothing of them goes on, nothing of them starts later. */

import { request } from "node:http";
import type { ExecResponse } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { NO_CANARY, OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { scrapeOf, sumOf } from "@svc/test-kit/system/scrape";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** The time in which what a run left behind must be gone, on a machine that does other work. */
const GONE_MS = slow(15_000);
/** Long enough for a program to appear on a busy machine. */
const APPEAR_MS = slow(20_000);
const QUEUE_WAIT_MS = slow(3000);
/** A program that lasts until the requests behind it are refused. */
const LONGER_SECONDS = slow(10);
/** What shows of a program and its child: both, or the microVM that they are in. */
const PARTS = IN_GUESTS ? 1 : 2;
let system: System;
let api: Api;

beforeAll(async () => {
  const env = {
    ...OPEN_LIMITS,
    ...NO_CANARY,
    PYTHON_CONCURRENCY: "1",
    JOB_QUEUE_WAIT_MS: String(QUEUE_WAIT_MS),
  };
  system = await startSystem({ env });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const holding = (marker: string, lang = "py"): ExecInput => ({
  lang,
  code:
    lang === "py"
      ? "import os, sys, time\\nos.fork()\\ntime.sleep(60)".replaceAll("\\n", "\n")
      : `python3 -c 'import time; time.sleep(60)' "$1" & setsid python3 -c 'import time; time.sleep(60)' "$1"`,
  args: [marker],
});

/** Executions that have begun on the runner so far, whatever became of them. */
async function begun(): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${system.instance.ports.runner}/metrics`);
  const text = await response.text();
  const counts = [...text.matchAll(/^svc_sandbox_(?:executions_total|active_executions)\{[^}]*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

const WAITING = { queue: "python-queue", state: "waiting" };
const waiting = async () => sumOf(await scrapeOf(system.instance, "worker"), "svc_queue_jobs", WAITING);

/** What would have started since then has: one program of the queue runs at a time, in the order in which they came. */
async function expectOnlyMine(before: number, mine: number): Promise<void> {
  expect((await api.exec({ lang: "py", code: "print('next')" })).stdout).toBe("next\n");
  await expect.poll(begun).toBe(before + mine + 1);
}

describe("a client that leaves", () => {
  test.each(["py", "bash"])("ends its %s program within a second, children too", async (lang) => {
    const marker = newMarker();
    const client = new AbortController();
    const call = api.exec(holding(marker, lang), { signal: client.signal });
    call.catch(() => undefined);
    await until(() => processesWith(marker).length >= PARTS, APPEAR_MS);
    client.abort();
    await until(
      () => processesWith(marker).length === 0,
      GONE_MS,
      () => processesWith(marker),
    );
    await expect(call).rejects.toThrow();
    expect((await api.exec({ lang, code: "" })).code).toBe(0);
  });

  test("by a reset of its connection ends its program too", async () => {
    const marker = newMarker();
    const socket = await openCall(holding(marker, "bash"));
    await until(() => processesWith(marker).length >= PARTS, APPEAR_MS);
    socket.resetAndDestroy();
    await until(
      () => processesWith(marker).length === 0,
      GONE_MS,
      () => processesWith(marker),
    );
  });

  test("while its request waits takes the request along", async () => {
    const marker = newMarker();
    const first = new AbortController();
    const running = api.exec(holding(marker), { signal: first.signal });
    running.catch(() => undefined);
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    const before = await begun();
    const second = new AbortController();
    const left = api.exec({ lang: "py", code: "print(1)" }, { signal: second.signal });
    left.catch(() => undefined);
    await expect.poll(waiting).toBe(1);
    second.abort();
    await expect.poll(waiting).toBe(0);
    first.abort();
    await until(
      () => processesWith(marker).length === 0,
      GONE_MS,
      () => processesWith(marker),
    );
    await expectOnlyMine(before, 0);
  });
});

describe("a request that cannot start", () => {
  test("is refused with Retry-After and never runs; the running one is not disturbed", async () => {
    const marker = newMarker();
    const running = api.tryExec({
      lang: "py",
      code: `import time\ntime.sleep(${LONGER_SECONDS})\nprint('whole')`,
      args: [marker],
    });
    await until(() => processesWith(marker).length > 0, APPEAR_MS);
    const before = await begun();
    const refused = await Promise.all([1, 2, 3].map((n) => api.tryExec({ lang: "py", code: `print(${n})` })));
    for (const { status, refusal, headers } of refused) {
      expect([status, refusal.error]).toEqual([503, "queue_saturated"]);
      expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    }
    // Programs of other languages have a queue of their own.
    expect((await api.exec({ lang: "bash", code: "echo other" })).stdout).toBe("other\n");
    expect((await running).ok<ExecResponse>()).toMatchObject({ stdout: "whole\n", code: 0 });
    // The other one is that of Bash.
    await expectOnlyMine(before, 1);
  });
});

/** Sends an execution over a socket of its own and answers the socket. */
function openCall(input: ExecInput) {
  const body = JSON.stringify(input);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const call = request(`${api.url}/exec`, { method: "POST", headers, agent: false });
  call.on("error", () => undefined);
  call.end(body);
  return new Promise<import("node:net").Socket>((resolve) => call.once("socket", resolve));
}
