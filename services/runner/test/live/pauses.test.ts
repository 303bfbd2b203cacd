/** What becomes of paused programs: kept, evicted, lost, killed; and what else runs beside them. */

import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "@svc/test-kit/components/gateway";
import { descendants, until } from "@svc/test-kit/jail/host";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  endedOf,
  eventually,
  okOf,
  type ProgramSystem,
  pausedOf,
  type SystemOptions,
  startProgramSystem,
} from "../support/programs.ts";

let system: ProgramSystem | undefined;
afterEach(async () => {
  await system?.stop();
  system = undefined;
});
const started = async (options: SystemOptions = {}): Promise<ProgramSystem> => {
  system = await startProgramSystem(options);
  return system;
};

const ONE_CALL = `${RAW_CLIENT}\nprint(call("add", a=1))`;
const SLEEPS = `${RAW_CLIENT}\ncall("add", a=1)\ntime.sleep(30)`;
const codeOf = ({ status, json }: { status: number; json: () => Record<string, unknown> }) => [
  status,
  json().error,
];
const GONE = [404, "execution_not_found"];

describe("a paused program beside those of other tests", () => {
  let s: ProgramSystem;
  const begun: string[] = [];
  const execution = async () => {
    const one = await s.execution();
    begun.push(one.id);
    return one;
  };
  beforeAll(async () => {
    s = await startProgramSystem();
  });
  afterEach(async () => {
    for (const id of begun.splice(0)) await s.discard(id);
    await eventually("nothing is left", async () => {
      const { running, paused } = await s.active();
      return running === 0 && paused === 0;
    });
  });
  afterAll(() => s.stop());

  it("is gone for who asks for an unknown execution, a round that is not the next, or asks twice", async () => {
    const one = await execution();
    expect(codeOf(await s.resume(one, 2, ["call_001"]))).toEqual(GONE);
    pausedOf(await s.start(one, ONE_CALL));
    for (const round of [1, 3]) expect(codeOf(await s.resume(one, round, ["call_001"]))).toEqual(GONE);
    await s.answer(one, [{ call_id: "call_001", result: 1 }]);
    const answers = await Promise.all([1, 2].map(() => s.resume(one, 2, ["call_001"])));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect(codeOf(await s.resume(one, 3, ["call_001"]))).toEqual(GONE);
  });

  it("is ended by who may: the manifest must name it", async () => {
    const one = await execution();
    pausedOf(await s.start(one, ONE_CALL));
    expect(await s.discard(one.id, (await execution()).id)).toBe(403);
    expect((await s.active()).paused).toBe(1);
    expect(await s.discard(one.id)).toBe(204);
    expect(await s.discard(one.id)).toBe(404);
    expect((await s.active()).paused).toBe(0);
    expect(codeOf(await s.resume(one, 2, ["call_001"]))).toEqual(GONE);
  });

  it("is killed when the caller of its next round leaves", async () => {
    const one = await execution();
    pausedOf(await s.start(one, SLEEPS));
    await s.answer(one, [{ call_id: "call_001" }]);
    const caller = new AbortController();
    const resumed = s.resume(one, 2, ["call_001"], { signal: caller.signal });
    await eventually("it runs", async () => (await s.active()).running === 1);
    caller.abort();
    await expect(resumed).rejects.toThrow();
    await eventually("it is gone", async () => (await s.active()).running === 0);
    expect(codeOf(await s.resume(one, 3, []))).toEqual([400, "invalid_request"]);
    expect(codeOf(await s.resume(one, 3, ["call_001"]))).toEqual(GONE);
  });

  it("is abandoned when its execution is started again", async () => {
    const one = await execution();
    pausedOf(await s.start(one, ONE_CALL));
    pausedOf(await s.start(one, ONE_CALL, { ptc: { round: 2 } }));
    expect((await s.active()).paused).toBe(1);
    expect(codeOf(await s.resume(one, 2, ["call_001"]))).toEqual(GONE);
  });

  it("is evicted when its tool exchange has ended", async () => {
    const one = await execution();
    pausedOf(await s.start(one, ONE_CALL));
    await s.toolServer.close(one.exchange);
    await eventually("it is evicted", async () => (await s.active()).paused === 0);
    expect(await s.metric('svc_ptc_live_evictions_total{cause="unanswerable"}')).toBe(1);
  });

  it("goes on with the results of its resume when its calls have begun to wait at the gateway", async () => {
    const one = await execution();
    pausedOf(await s.start(one, `${ONE_CALL}\nprint(call("add", a=2))`));
    await delay(1500);
    const answers = [{ call_id: "call_001", outcome: { result_json: "1" } }];
    const paused = pausedOf(await s.resume(one, 2, ["call_001"], { answers }));
    expect(paused).toMatchObject({ stdout: "1\n", pending_call_ids: ["call_002"] });
    await delay(1500);
    await s.answer(one, [{ call_id: "call_002", result: 2 }]);
    expect(endedOf(await s.resume(one, 3, ["call_002"])).stdout).toBe("1\n2\n");
  });
});

describe("a paused program", () => {
  it("holds no slot, and the longest paused one goes when there are too many", async () => {
    const s = await started({
      slots: 5,
      env: {
        SANDBOX_MAX_PAUSED: "2",
        SANDBOX_MAX_PAUSED_PER_PRINCIPAL: "2",
        SANDBOX_MAX_CONCURRENT_JOBS: "1",
      },
    });
    const all = [await s.execution(), await s.execution(), await s.execution()];
    for (const one of all) pausedOf(await s.start(one, ONE_CALL));
    expect((await s.health()).slots).toMatchObject({ busy: 0, paused: 2 });
    expect(await s.metric('svc_ptc_live_evictions_total{cause="max_paused"}')).toBe(1);
    expect((await s.active()).paused).toBe(2);
    const [first, ...others] = all;
    if (first === undefined) throw new Error("no program");
    expect(codeOf(await s.resume(first, 2, ["call_001"]))).toEqual(GONE);
    for (const one of others) {
      await s.answer(one, [{ call_id: "call_001", result: 4 }]);
      expect(endedOf(await s.resume(one, 2, ["call_001"])).stdout).toBe("4\n");
    }
  });

  it("goes when its own user pauses more than a share, and stays whatever another user pauses", async () => {
    // Four that pause and one that runs; one for health, and one each for JavaScript and Bash that waits.
    const s = await started({ slots: 8, env: { SANDBOX_MAX_PAUSED: "4", SANDBOX_MAX_CONCURRENT_JOBS: "1" } });
    const [own, flood] = [{ user_id: "one" }, { user_id: "flood" }];
    const mine = [await s.execution(), await s.execution()];
    for (const one of mine) pausedOf(await s.start(one, ONE_CALL, { claims: own }));
    const theirs = [];
    for (let at = 0; at < 6; at++) {
      const one = await s.execution();
      pausedOf(await s.start(one, ONE_CALL, { claims: flood }));
      theirs.push(one);
    }
    expect(await s.metric('svc_ptc_live_evictions_total{cause="max_paused_per_principal"}')).toBe(4);
    expect((await s.active()).paused).toBe(4);
    for (const one of theirs.slice(0, 4)) expect(codeOf(await s.resume(one, 2, ["call_001"]))).toEqual(GONE);
    for (const one of [...mine, ...theirs.slice(4)]) {
      await s.answer(one, [{ call_id: "call_001", result: 4 }]);
      expect(endedOf(await s.resume(one, 2, ["call_001"])).stdout).toBe("4\n");
    }
  });

  it("is evicted after the longest pause", async () => {
    const s = await started({
      env: { TOOL_CALL_REQUEST_TIMEOUT: "1000", TOOL_CALL_SESSION_EXPIRY: "60" },
    });
    const one = await s.execution();
    pausedOf(await s.start(one, ONE_CALL));
    await eventually("it is evicted", async () => (await s.active()).paused === 0);
    expect(await s.metric('svc_ptc_live_evictions_total{cause="timeout"}')).toBe(1);
    expect(codeOf(await s.resume(one, 2, ["call_001"]))).toEqual(GONE);
  });

  it("that has ended but has calls left is kept as well, and its files with it", async () => {
    // Only its end completes its batch of calls, however long it takes to end.
    const s = await started({ env: { PTC_SETTLE_MS: "60000", PTC_SETTLE_MAX_MS: "60000" } });
    const one = await s.execution();
    const text = `${RAW_CLIENT}\nopen("out.txt", "w").write("x")\nissue("add", a=1)`;
    const { pending_call_ids } = pausedOf(await s.start(one, text));
    expect((await s.health()).slots).toMatchObject({ busy: 0, paused: 1 });
    expect((await s.resume(one, 2, pending_call_ids)).json()).toMatchObject({
      files: [{ name: "out.txt" }],
      code: 0,
    });
    expect((await s.active()).paused).toBe(0);
  });

  it("that has ended but has calls left takes no jail from programs that begin", async () => {
    const s = await started({ slots: 6, ready: 2, env: { SANDBOX_WARM_START: "off" } });
    for (let at = 0; at < 3; at++) {
      pausedOf(await s.start(await s.execution(), `${RAW_CLIENT}\nissue("add", a=1)`));
    }
    expect((await s.active()).paused).toBe(3);
    expect(endedOf(await s.start(await s.execution(), "print(1)")).stdout).toBe("1\n");
  });

  it("is not kept where every round is to be run from the top; its calls are recorded", async () => {
    const s = await started({ env: { PTC_MODE: "replay" } });
    const one = await s.execution();
    const { pending_call_ids } = pausedOf(await s.start(one, ONE_CALL));
    expect((await s.active()).paused).toBe(0);
    const { pending_calls } = await s.toolServer.pending(one.exchange, pending_call_ids, 5000);
    expect(pending_calls).toMatchObject([{ call_id: "call_001", tool_input: { a: 1 } }]);
  });

  it("goes on before programs that begin", async () => {
    const s = await started({
      slots: 6,
      env: { SANDBOX_MAX_CONCURRENT_JOBS: "1", SANDBOX_QUEUE_LIMIT: "2", SANDBOX_QUEUE_WAIT_MS: "60000" },
    });
    const one = await s.execution();
    pausedOf(await s.start(one, ONE_CALL));
    const holder = await s.execution();
    const held = s.start(holder, "import time; time.sleep(60)");
    await eventually("the slot is taken", async () => (await s.active()).running === 1);
    const order: [string, number][] = [];
    const noted = async (name: string, asked: Promise<Answer>) => {
      const answer = await asked;
      order.push([name, answer.status]);
      return answer;
    };
    const begun = await Promise.all([1, 2, 3].map(() => s.execution()));
    const others = begun.map((other) => noted("other", s.start(other, "pass")));
    // Two may wait: they do when the third one is refused.
    await Promise.race(others);
    const answers = [{ call_id: "call_001", outcome: { result_json: "1" } }];
    const resumes = [1, 2].map(() => noted("resumed", s.resume(one, 2, ["call_001"], { answers })));
    // One of them may go on: it waits when the other one is refused.
    await Promise.race(resumes);
    expect(await s.discard(holder.id)).toBe(204);
    await Promise.all([held, ...resumes, ...others]);
    expect(order).toEqual([
      ["other", 503],
      ["resumed", 404],
      ["resumed", 200],
      ["other", 200],
      ["other", 200],
    ]);
  });

  it("stays where it is when no slot gets free in time", async () => {
    const s = await started({
      env: { SANDBOX_MAX_CONCURRENT_JOBS: "1", SANDBOX_QUEUE_WAIT_MS: "200" },
    });
    const one = await s.execution();
    pausedOf(await s.start(one, ONE_CALL));
    const holder = await s.execution();
    const other = s.start(holder, "import time; time.sleep(60)");
    await eventually("the slot is taken", async () => (await s.active()).running === 1);
    await s.answer(one, [{ call_id: "call_001", result: 1 }]);
    expect(codeOf(await s.resume(one, 2, ["call_001"]))).toEqual([503, "runner_busy"]);
    await s.discard(holder.id);
    await other;
    expect(endedOf(await s.resume(one, 2, ["call_001"])).stdout).toBe("1\n");
  });

  it("goes on after gateway and tool call server were killed and came back", async () => {
    const s = await started();
    const one = await s.execution();
    pausedOf(await s.start(one, ONE_CALL));
    await s.toolServer.kill();
    await s.gateway.gateway.kill();
    await s.toolServer.restart();
    await s.gateway.restart();
    await s.answer(one, [{ call_id: "call_001", result: "back" }]);
    expect(endedOf(await s.resume(one, 2, ["call_001"])).stdout).toBe("back\n");
  });

  it("is killed when its runner stops, and leaves nothing in its slot", async () => {
    const s = await started({ slots: 2 });
    pausedOf(await s.start(await s.execution(), ONE_CALL));
    const [paused] = s.jaild.keepers.filter((keeper) =>
      descendants(keeper).some((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("main.py")),
    );
    expect(paused).toBeDefined();
    await s.runner.kill("SIGTERM");
    await until(() => !s.jaild.keepers.includes(paused as number), "its keeper is gone");
    await s.jaild.full();
    expect(s.leftInToolDirectories()).toEqual([]);
  });

  it("is told apart, when its runner stops, from one that has not begun: only what runs may have had an effect", async () => {
    const s = await started({
      slots: 2,
      env: {
        SANDBOX_MAX_CONCURRENT_JOBS: "1",
        SANDBOX_QUEUE_LIMIT: "1",
        SANDBOX_QUEUE_WAIT_MS: "60000",
        SHUTDOWN_GRACE_MS: "1000",
      },
    });
    const begun = s.start(await s.execution(), "import time; time.sleep(60)");
    await eventually("the slot is taken", async () => (await s.active()).running === 1);
    const others = [await s.execution(), await s.execution()].map((one) => s.start(one, ONE_CALL));
    // One may wait: it does when the other one is refused.
    expect(codeOf(await Promise.race(others))).toEqual([503, "runner_busy"]);
    await s.runner.kill("SIGTERM");
    expect((await Promise.all(others)).map((answer) => codeOf(answer)[1])).toContain("shutting_down");
    expect(codeOf(await begun)).toEqual([502, "sandbox_execution_failed"]);
  });

  it("costs no processor time, however many there are", async () => {
    const count = 32;
    // Beside the programs' jails: one for health, and one each that waits for JavaScript and Bash.
    const env = { SANDBOX_MAX_PAUSED_PER_PRINCIPAL: String(count) };
    const s = await started({ slots: count + 3, env });
    const executions = await Promise.all(Array.from({ length: count }, () => s.execution()));
    for (const one of executions) pausedOf(await s.start(one, ONE_CALL));
    expect((await s.active()).paused).toBe(count);
    const processes = () => [
      s.runner.pid,
      s.gateway.gateway.pid,
      s.toolServer.pid,
      s.jaild.pid,
      ...s.jaild.keepers,
    ];
    const ticks = () => processes().reduce((sum, pid) => sum + cpuTicks(pid), 0);
    const ticksIn = async (ms: number) => {
      const before = ticks();
      await delay(ms);
      return ticks() - before;
    };
    // Jails are made in the places of the paused ones, and components collect their heaps once when it is quiet.
    await s.jaild.full();
    let used = await ticksIn(2000);
    for (let looks = 0; used > 20 && looks < 5; looks++) used = await ticksIn(2000);
    expect(used).toBeLessThanOrEqual(20);
    for (const one of executions) {
      await s.answer(one, [{ call_id: "call_001", result: 1 }]);
      expect(okOf(await s.resume(one, 2, ["call_001"]))).toMatchObject({ stdout: "1\n" });
    }
  });
});

/** User and system time in ticks of 10 ms. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
