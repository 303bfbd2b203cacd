/** Programs in guests: a real launcher, QEMU with an emulated processor, gateway, tool call server, file server and Redis. */
import { readFileSync } from "node:fs";
import type { ExecuteResponse } from "@svc/contracts";
import type { Answer } from "@svc/test-kit/components/gateway";
import { guestProcesses, memoryFiles, namespacesOf, placesOf, statusOf } from "@svc/test-kit/system/guests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endedOf, type ProgramSystem, pausedOf, RECORDED_MS } from "../support/programs.ts";
import { requestOf } from "../support/runner.ts";
import { startGuestSystem } from "./guest-system.ts";

let system: ProgramSystem;

beforeAll(async () => {
  expect(guestProcesses()).toEqual([]);
  system = await startGuestSystem();
});

afterAll(async () => {
  await system?.stop();
});

interface Options {
  inputs?: Awaited<ReturnType<ProgramSystem["gateway"]["upload"]>>[];
  signal?: AbortSignal;
  language?: string;
}

async function send(code: string, { inputs = [], signal, language = "bash" }: Options = {}): Promise<Answer> {
  const grant = await system.gateway.register(inputs);
  const body = requestOf(grant, code, language);
  const manifest = system.sign(grant.executionManifestClaims, body, grant.egressGrantToken, false);
  const signed = { ...body, egress_grant: grant.egressGrantToken, execution_manifest: manifest };
  return system.post("/execute", signed, signal);
}

const run = async (code: string, options?: Options): Promise<ExecuteResponse> =>
  endedOf(await send(code, options));

/** Whether QEMU was told to take over a saved guest, rather than to boot one. */
const goesOn = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("\0-incoming\0");
const machines = () => guestProcesses().filter(({ name }) => name.startsWith("qemu"));
const ended = (cause: string) => system.metric(`svc_launcher_guests_ended_total{cause="${cause}"}`);

describe("a program in a guest", () => {
  it("runs under a kernel of its own, reads its inputs, and stores its outputs", async () => {
    const input = await system.gateway.upload("in.txt", "from storage\n");
    const { stdout, code, files } = await run("uname -r; cat in.txt; echo made > out.txt", {
      inputs: [input],
    });
    expect(code).toBe(0);
    const [release, line] = stdout.split("\n");
    expect(release).toMatch(/-cloud-amd64$/);
    expect(release).not.toBe(readFileSync("/proc/sys/kernel/osrelease", "utf8").trim());
    expect(line).toBe("from storage");
    // Only what is stored has a size.
    expect(files.find(({ name }) => name === "out.txt")?.size).toBe("made\n".length);
  });

  it("has the time of this machine, and shares neither random numbers nor ids with other guests", async () => {
    const code = "date +%s; head -c 16 /dev/urandom | od -An -tx1; echo $RANDOM$RANDOM$RANDOM; touch out.txt";
    const answers = [await run(code), await run(code)];
    const lines = answers.map(({ stdout }) => stdout.trim().split("\n"));
    // The first command of a program whose answer has come just now.
    expect(Math.abs(Number(lines[1]?.[0]) - Date.now() / 1000)).toBeLessThan(60);
    for (const at of [1, 2]) expect(lines[0]?.[at]).not.toBe(lines[1]?.[at]);
    const ids = answers.map(({ files }) => files[0]?.id);
    expect(ids[0]).toEqual(expect.any(String));
    expect(ids[0]).not.toBe(ids[1]);
  });

  it.each([
    ["python", "import time\nprint(int(time.time() * 1000))"],
    ["javascript", "console.log(Math.round(performance.timeOrigin + performance.now()))"],
  ])("in %s knows the time of day", async (language, code) => {
    const { stdout } = await run(code, { language });
    expect(Math.abs(Number(stdout) - Date.now())).toBeLessThan(60_000);
  });

  it.each([
    ["python", "import random, uuid, numpy\nprint(random.random(), uuid.uuid4(), numpy.random.rand())"],
    [
      "javascript",
      "console.log(Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(2)).join('-'))",
    ],
  ])("in %s has random numbers of its own", async (language, code) => {
    const lines = [await run(code, { language }), await run(code, { language })].map(({ stdout }) =>
      stdout.trim().split(" "),
    );
    for (const at of [0, 1, 2]) {
      expect(lines[0]?.[at]).toMatch(/./);
      expect(lines[0]?.[at]).not.toBe(lines[1]?.[at]);
    }
  });

  it("sees no network device but its own loopback, and none of this machine's processes", async () => {
    const { stdout } = await run(
      "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; ls /proc | grep -c '^[0-9]'",
    );
    const [device, processes] = stdout.trim().split("\n");
    expect(device).toBe("lo");
    expect(Number(processes)).toBeLessThan(10);
  });

  it("is the last of its guest, whose process is gone with it", async () => {
    const before = new Set(machines().map(({ pid }) => pid));
    const served = await ended("served");
    await run("true");
    await expect.poll(() => ended("served")).toBe(served + 1);
    await expect
      .poll(() => [...before].filter((pid) => statusOf(pid)("Pid") !== "").length)
      .toBeLessThan(before.size);
  });
});

describe("a guest's process", () => {
  it("has a user of its own without rights, namespaces of its own, and a filter of system calls", async () => {
    await expect.poll(() => machines().length).toBeGreaterThan(0);
    const all = machines();
    for (const { pid } of all) {
      const status = statusOf(pid);
      expect(status("CapEff")).toBe("0000000000000000");
      expect(status("CapBnd")).toBe("0000000000000000");
      expect(status("NoNewPrivs")).toBe("1");
      expect(status("Seccomp")).toBe("2");
      const own = namespacesOf("self");
      expect(namespacesOf(pid).filter((namespace) => own.includes(namespace))).toEqual([]);
    }
    expect(new Set(all.map(({ uid }) => uid)).size).toBe(all.length);
    expect(memoryFiles()).toEqual([]);
  });
});

describe("a request", () => {
  it("is refused without a manifest and with one that was used, before a guest sees it", async () => {
    const grant = await system.gateway.register([]);
    const body = requestOf(grant, "echo once");
    expect((await system.post("/execute", body)).status).toBe(401);
    const manifest = system.sign(grant.executionManifestClaims, body, grant.egressGrantToken, false);
    const signed = { ...body, egress_grant: grant.egressGrantToken, execution_manifest: manifest };
    expect(endedOf(await system.post("/execute", signed)).stdout).toBe("once\n");
    const failed = await ended("failed");
    const again = await system.post("/execute", signed);
    expect([again.status, again.json().reason]).toEqual([403, "replayed"]);
    const unknown = await send("x", { language: "cobol" });
    expect([unknown.status, unknown.json().error]).toEqual([400, "unsupported_language"]);
    expect(await ended("failed")).toBe(failed);
  });

  it("whose caller leaves ends its guest", async () => {
    const failed = await ended("failed");
    const left = new AbortController();
    const answer = send("sleep 100", { signal: left.signal });
    await expect.poll(() => system.metric('svc_launcher_guests{state="busy"}')).toBe(1);
    left.abort();
    await expect(answer).rejects.toThrow();
    await expect.poll(() => ended("failed")).toBe(failed + 1);
    await expect.poll(async () => (await system.active()).running).toBe(0);
  });

  it("whose guest is killed fails, and the next one finds another guest", async () => {
    const lost = await ended("lost");
    const answer = send("sleep 100");
    await expect.poll(async () => (await system.active()).running).toBe(1);
    await expect.poll(() => system.metric('svc_launcher_guests{state="busy"}')).toBe(1);
    await expect.poll(() => system.metric('svc_launcher_guests{state="ready"}')).toBe(1);
    for (const { pid } of machines()) process.kill(pid, "SIGKILL");
    const { status, json } = await answer;
    expect([status, json().error]).toEqual([502, "sandbox_execution_failed"]);
    // The one that waited; that of the run may count as failed.
    await expect.poll(() => ended("lost")).toBeGreaterThan(lost);
    expect((await run("echo again")).stdout).toBe("again\n");
  });
});

describe("a program with tools", () => {
  const add = ({ tool_input }: { tool_input: unknown }) => {
    const { a, b } = tool_input as { a: number; b: number };
    return a + b;
  };

  it("keeps its guest while it is paused, and goes on in it", async () => {
    const code =
      "import os\nboot = open('/proc/stat').read()\nprint(await add(a=1, b=2))\nprint(await add(a=3, b=4))";
    const { rounds, result } = await system.drive(code, add);
    expect(rounds).toHaveLength(2);
    expect(rounds[0]?.runner_url).toBe("http://this-runner:2000");
    expect(result.stdout).toBe("3\n7\n");
  });

  it("takes no processor in a long pause, nor do guests that wait, and goes on", async () => {
    const one = await system.execution();
    const { pending_call_ids } = pausedOf(await system.start(one, "print(await add(a=1, b=2))"));
    const states = () => machines().map(({ pid }) => statusOf(pid)("State"));
    await expect.poll(() => states().filter((state) => !state.startsWith("T"))).toEqual([]);
    expect(states().length).toBeGreaterThan(1);
    await system.answer(
      one,
      pending_call_ids.map((call_id) => ({ call_id, result: 3 })),
    );
    const { stdout } = endedOf(await system.resume(one, 2, pending_call_ids));
    expect(stdout).toBe("3\n");
  });

  it("is gone when it is discarded, and its guest with it", async () => {
    const one = await system.execution();
    pausedOf(await system.start(one, "print(await add(a=1, b=2))"));
    await expect.poll(() => system.metric('svc_launcher_guests{state="paused"}')).toBe(1);
    expect(await system.discard(one.id)).toBe(204);
    expect(await system.discard(one.id)).toBe(404);
    await expect.poll(() => system.metric('svc_launcher_guests{state="paused"}')).toBe(0);
  });

  it("is not found when its guest was killed while it was paused", async () => {
    const one = await system.execution();
    const { pending_call_ids } = pausedOf(await system.start(one, "print(await add(a=1, b=2))"));
    for (const { pid } of machines()) process.kill(pid, "SIGKILL");
    const answer = await system.resume(one, 2, pending_call_ids);
    expect([answer.status, answer.json().error]).toEqual([404, "execution_not_found"]);
  });
});

describe("the launcher", () => {
  it("leaves no process and no memory when it is killed in the midst of a run, and the next one removes the rest", async () => {
    const { pid } = system.runner;
    expect(placesOf(pid)).not.toEqual([]);
    const answer = send("sleep 100").catch(() => "no answer");
    await expect.poll(() => system.metric('svc_launcher_guests{state="busy"}')).toBe(1);
    await system.runner.kill("SIGKILL");
    expect(await answer).toBe("no answer");
    await expect.poll(guestProcesses).toEqual([]);
    expect(memoryFiles()).toEqual([]);
    await system.stop();
    // Limits that the launcher's own first programs do not keep: guests go on from a saved one all the same.
    const limits = { javascript: { run_timeout: 1 }, bash: { max_file_size: 1 } };
    const env = { PTC_MODE: "replay", SANDBOX_LIMIT_OVERRIDES: JSON.stringify(limits) };
    system = await startGuestSystem(env);
    expect(machines().map(({ pid }) => goesOn(pid))).toContain(true);
    expect(placesOf(pid)).toEqual([]);
    expect((await run("echo on")).stdout).toBe("on\n");
  });
});

describe("a program that is run again at each call, by this next launcher", () => {
  it("has its calls recorded before its guest ends, however many there are", async () => {
    const one = await system.execution();
    const code = "await asyncio.gather(*[add(a=i, b=0) for i in range(200)])";
    const { pending_call_ids } = pausedOf(await system.start(one, code));
    expect(pending_call_ids).toHaveLength(200);
    const { pending_calls } = await system.toolServer.pending(one.exchange, pending_call_ids, RECORDED_MS);
    expect(pending_calls.map(({ call_id }) => call_id)).toEqual(pending_call_ids);
    await expect.poll(() => system.metric('svc_launcher_guests{state="paused"}')).toBe(0);
  });
});
