/** One worker with two real runners, one of which is killed and comes back: every request is answered. */
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@svc/test-kit/system/processes";
import { drive, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTwoRunners, type TwoRunners } from "../support/two-runners.ts";

const SOON_MS = 60_000;

let system: TwoRunners;
beforeAll(async () => {
  system = await startTwoRunners();
  await until(async () => (await readiness()).status === 200, SOON_MS);
}, 2 * SOON_MS);
afterAll(() => system?.stop());

async function states(): Promise<Record<string, number>> {
  const text = await (await fetch(`${system.worker.url}/metrics`)).text();
  const found = text.matchAll(/^svc_worker_runners\{state="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, state, count]) => [state, Number(count)]));
}

const counted = (wanted: Record<string, number>) => expect.poll(states, { timeout: SOON_MS }).toEqual(wanted);

async function readiness(): Promise<{ status: number; body: { reasons?: Record<string, string> } }> {
  const answer = await fetch(`${system.worker.url}/ready`);
  return { status: answer.status, body: (await answer.json()) as { reasons?: Record<string, string> } };
}

const hello = () => system.api.exec({ lang: "bash", code: "echo hello" });

/** Many runs, four at a time; `meanwhile` happens after some of them. */
async function runMany(count: number, meanwhile: (done: number) => Promise<void>): Promise<string[]> {
  const answers: string[] = [];
  let begun = 0;
  const lane = async () => {
    while (begun++ < count) {
      answers.push((await hello()).stdout);
      await meanwhile(answers.length);
    }
  };
  await Promise.all([lane(), lane(), lane(), lane()]);
  return answers;
}

const TOOLS = { add: ({ a, b }: { a: number; b: number }) => a + b };
const PROGRAM = {
  lang: "py",
  code: "print(await add(a=1, b=2))\nprint(await add(a=3, b=4))",
  tools: [{ name: "add" }],
};

/** Of the runners, the one whose program is paused. */
async function holderOf(): Promise<number> {
  const paused = await Promise.all(
    system.runners.map(async ({ url }) => {
      const answer = await fetch(`${url}/api/v2/health`);
      return ((await answer.json()) as { slots: { paused: number } }).slots.paused;
    }),
  );
  expect(paused.reduce((sum, count) => sum + count)).toBe(1);
  return paused.indexOf(1);
}

/** Resumes that went well, by their mode. */
async function resumes(): Promise<{ live: number; replay: number }> {
  const { origin } = new URL(system.api.url);
  const text = await (await fetch(`${origin}/metrics`)).text();
  const counts = { live: 0, replay: 0 };
  const found = text.matchAll(
    /^svc_ptc_replay_continuations_total\{mode="(live|replay)",outcome="(?:paused|completed)"\} (\d+)$/gm,
  );
  for (const [, mode, count] of found) counts[mode as "live" | "replay"] += Number(count);
  return counts;
}

describe("two runners", () => {
  it("share the runs", async () => {
    const before = await Promise.all(system.runners.map(({ runs }) => runs()));
    const answers = await runMany(20, async () => undefined);
    expect(new Set(answers)).toEqual(new Set(["hello\n"]));
    const after = await Promise.all(system.runners.map(({ runs }) => runs()));
    for (const [at, count] of after.entries()) expect(count - (before[at] ?? 0)).toBeGreaterThanOrEqual(5);
  });

  it("continue paused programs where these are, without an advertised address", async () => {
    const before = await resumes();
    for (let times = 0; times < 4; times++) {
      const { answer } = await drive(system.api, PROGRAM, TOOLS);
      expect(answer).toMatchObject({ status: "completed", stdout: "3\n7\n" });
    }
    expect(await resumes()).toEqual({ ...before, live: before.live + 8 });
  });

  it("answer every run while one is killed in the middle, and it serves again when it is back", async () => {
    const [first] = system.runners;
    const answers = await runMany(60, async (done) => {
      if (done === 15) await first.kill();
      if (done === 40) await first.restart();
    });
    expect(answers).toEqual(Array(60).fill("hello\n"));
    await counted({ ready: 2, busy: 0, away: 0 });
    const before = await first.runs();
    await runMany(8, async () => undefined);
    expect(await first.runs()).toBeGreaterThan(before);
  });

  it("replay a program whose runner is killed while it is paused", async () => {
    const before = await resumes();
    const paused = await startPaused(system.api, PROGRAM);
    const holder = system.runners[await holderOf()];
    await holder?.kill();
    const { answer } = await driveOn(system.api, paused, TOOLS);
    expect(answer).toMatchObject({ status: "completed", stdout: "3\n7\n" });
    // The second call is that of a program that is alive again.
    expect(await resumes()).toEqual({ live: before.live + 1, replay: before.replay + 1 });
    await holder?.restart();
    await counted({ ready: 2, busy: 0, away: 0 });
  });

  it("resume on the runner that has the program while the other one is gone", async () => {
    const before = await resumes();
    const paused = await startPaused(system.api, PROGRAM);
    const other = system.runners[1 - (await holderOf())];
    await other?.kill();
    const { answer } = await driveOn(system.api, paused, TOOLS);
    expect(answer).toMatchObject({ status: "completed", stdout: "3\n7\n" });
    expect(await resumes()).toEqual({ ...before, live: before.live + 2 });
    await other?.restart();
    await counted({ ready: 2, busy: 0, away: 0 });
  });
});

describe("a runner that stands still", () => {
  it("loses its runs to the other one, and serves again when it goes on", async () => {
    const [first] = system.runners;
    first.signal("SIGSTOP");
    try {
      const answers = await runMany(8, async () => undefined);
      expect(answers).toEqual(Array(8).fill("hello\n"));
      await counted({ ready: 1, busy: 0, away: 1 });
    } finally {
      first.signal("SIGCONT");
    }
    await counted({ ready: 2, busy: 0, away: 0 });
  });
});

describe("a service that has no slot left", () => {
  const BUSY_MS = 75_000;
  /** Much longer than what is away is waited for, and in time for a request that waits. */
  const SHORT_SECONDS = 40;
  const apiReadiness = async () => (await fetch(`${system.api.url}/ready`)).status;
  it("starts what waits for a slot when there is one, jobs and requests", async () => {
    const long = Array.from({ length: 4 }, () =>
      system.api.exec({ lang: "bash", code: `sleep ${SHORT_SECONDS}` }),
    );
    await counted({ ready: 0, busy: 2, away: 0 });
    const input = { lang: "py", code: "print(1)" };
    const made = await system.api.post("/exec", input, { headers: { prefer: "respond-async" } });
    expect(made.status).toBe(202);
    const { job_id } = made.json<{ job_id: string }>();
    const jobOf = async () => (await system.api.send("GET", `/jobs/${job_id}`)).ok<{ status: string }>();
    expect((await system.api.exec(input)).stdout).toBe("1\n");
    await until(async () => !["queued", "running"].includes((await jobOf()).status), SOON_MS);
    expect(await jobOf()).toMatchObject({ status: "completed", result: { stdout: "1\n" } });
    await Promise.all(long);
  });

  const fill = () => {
    const leaves = Array.from({ length: 4 }, () => {
      const caller = new AbortController();
      const input = { lang: "bash", code: "sleep 290", timeout: 300_000 };
      system.api.exec(input, { signal: caller.signal }).catch(() => undefined);
      return () => caller.abort();
    });
    return () => {
      for (const leave of leaves) leave();
    };
  };

  it(
    "is ready for as long as its programs run, and not when its runners stand still",
    async () => {
      const leave = fill();
      try {
        await counted({ ready: 0, busy: 2, away: 0 });
        for (const untilMs = performance.now() + BUSY_MS; performance.now() < untilMs; await sleep(1000))
          expect([await apiReadiness(), (await readiness()).status]).toEqual([200, 200]);
        for (const runner of system.runners) runner.signal("SIGSTOP");
        await until(async () => (await apiReadiness()) === 503, 90_000);
      } finally {
        for (const runner of system.runners) runner.signal("SIGCONT");
        leave();
      }
      await counted({ ready: 2, busy: 0, away: 0 });
      await until(async () => (await apiReadiness()) === 200, SOON_MS);
    },
    5 * SOON_MS,
  );
});

describe("the readiness of the worker", () => {
  it("lasts while one runner is there, ends with the last one, and comes back by itself", async () => {
    const [first, second] = system.runners;
    await first.kill();
    await counted({ ready: 1, busy: 0, away: 1 });
    expect((await readiness()).status).toBe(200);
    expect((await hello()).stdout).toBe("hello\n");
    await second.kill();
    await counted({ ready: 0, busy: 0, away: 2 });
    expect(await readiness()).toMatchObject({
      status: 503,
      body: { reasons: { runner: "none of 2 runners is ready" } },
    });
    const waiting = hello();
    await Promise.all([first.restart(), second.restart()]);
    expect((await waiting).stdout).toBe("hello\n");
    await counted({ ready: 2, busy: 0, away: 0 });
    await until(async () => (await readiness()).status === 200, SOON_MS);
  });
});
