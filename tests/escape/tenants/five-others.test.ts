/**
 * Five callers, each with programs that run and a program that is paused, while a sixth attacks: with tool calls, forms and
 * bodies that cost much to read, with pauses, processes, memory, locks and flushes. The runs of the five are answered, and
 * their paused programs go on where they stood; none is started again.
 */
import { randomUUID } from "node:crypto";
import { createConnection, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResponse, ToolCallRequired } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { observe } from "@svc/test-kit/system/bystander";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { declare, driveOn, resultsOf, startPaused, tryResume } from "@svc/test-kit/system/programmatic";
import { afterAll, expect, test } from "vitest";
import { PYTHON, untilIdle } from "../support/hostile.ts";
import type { PrincipalApi } from "../support/principals.ts";
import { attacker, principal, running } from "../support/running.ts";

/** More than all callers together may have: in microVMs, eight (../support/setup.ts). */
const PAUSES = IN_GUESTS ? 12 : 40;
const IDLE_MS = slow(60_000);
const CONNECTIONS_COUNT_LATER = Number.POSITIVE_INFINITY;
/** Connections that nobody uses are closed after a minute. */
const POOLS_SHRINK_MS = slow(150_000);
/** No request of the five takes longer, on a machine that does other work. */
const WORST_MS = slow(15_000);
const five = Array.from({ length: 5 }, (_, n) => principal({ sub: `caller-${n}`, tenant_id: `team-${n}` }));
const tools = { ask: ({ n }: { n: number }) => n + 1 };
const CODE = `import random
mark = "%.12f" % random.random()
print(mark)
print(await ask(n=1), mark)
`;

interface Waiting {
  caller: PrincipalApi;
  paused: ToolCallRequired;
}

/** What is still paused at the end is cancelled by this label. */
const LABEL = `five-others-${randomUUID()}`;
const LABELLED = { headers: { "x-librechat-code-request-id": LABEL } };

async function pauseOne(caller: PrincipalApi): Promise<Waiting> {
  return { caller, paused: await startPaused(caller, { code: CODE, tools: declare(["ask"]) }, LABELLED) };
}

/** The mark was made before the pause: a program that was started again has another one. */
async function goesOn({ caller, paused }: Waiting): Promise<void> {
  const { answer } = await driveOn(caller, paused, tools);
  const mark = paused.partial_stdout.trim();
  expect(mark).toMatch(/^0\.\d+/);
  expect(answer.stdout.trim().split("\n").at(-1)).toBe(`2 ${mark}`);
}

/**
 * What all attacks together have left open is counted once: each would wait for a minute until connections that its pauses held
 * close by themselves. The next file finds as few as every other one does.
 */
afterAll(() => untilIdle({ withinMs: POOLS_SHRINK_MS }));

async function underAttack(attack: () => Promise<void>): Promise<void> {
  const waiting = await Promise.all(five.map(pauseOne));
  const attacked = attack();
  try {
    const seen = await Promise.all(five.map((caller) => observe(caller, attacked)));
    for (const { observed } of seen) {
      expect(observed.failures, "what one of the five met").toEqual([]);
      expect(observed.served).toBeGreaterThan(0);
      expect(observed.worstMs).toBeLessThan(WORST_MS);
    }
    await Promise.all(waiting.map(goesOn));
  } finally {
    await Promise.allSettled([attacked]);
    for (const caller of [attacker, ...five])
      (await caller.post("/exec/programmatic/cancel", { request_id: LABEL })).ok();
  }
  await untilIdle({ withinMs: IDLE_MS, pooled: CONNECTIONS_COUNT_LATER });
}

const attackers = (n: number) =>
  startPaused(attacker, { code: `await ask(n=${n})`, tools: declare(["ask"]) }, LABELLED);
/** A principal may hold half of the paused programs: more than that evicts its own oldest. */
async function pauseMany(count: number): Promise<void> {
  for (let n = 0; n < count; n += 4) await Promise.all([0, 1, 2, 3].map((more) => attackers(n + more)));
}

const SLOW_CLOCK_MS = slow(10_000);
/** A program that calls with other arguments when it is run once more. */
async function differentCall(input: string): Promise<void> {
  const later = Date.now() + SLOW_CLOCK_MS;
  const code = `import time\nn = 1 if time.time() * 1000 < ${later} else ${input}\nprint(await ask(n=n))`;
  const paused = await startPaused(attacker, { code, tools: declare(["ask"]) }, LABELLED);
  expect(paused.tool_calls[0]?.input).toEqual({ n: 1 });
  await pauseMany(PAUSES);
  await sleep(Math.max(0, later - Date.now()));
  const answer = await tryResume(
    attacker,
    paused.continuation_token,
    resultsOf(paused.tool_calls, tools),
    LABELLED,
  );
  expect(answer.status, answer.text).toBe(200);
  expect(answer.json<{ status: string }>().status, answer.text).toBe("error");
}

async function neverEnding(path: string, count: number): Promise<Socket[]> {
  const { hostname, port, pathname } = new URL(running.tokenUrl);
  const head = `POST ${pathname}${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: ${attacker.authorization()}\r\n`;
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = createConnection(Number(port), hostname);
      socket.on("error", () => undefined);
      await new Promise((resolve) => socket.once("connect", resolve));
      socket.write(
        `${head}content-type: application/json\r\ncontent-length: 4000000\r\n\r\n{"code":"${"a".repeat(1e6)}`,
      );
      return socket;
    }),
  );
}

const form = (header: string) => {
  const part = `--b\r\nContent-Disposition: form-data; name="f"\r\n${header}\r\n\r\nv\r\n`;
  return {
    body: `${part.repeat(50)}--b--\r\n`,
    headers: { "content-type": "multipart/form-data; boundary=b" },
  };
};

/** Many at once, of which each is an ordinary answer. */
const programs = async (count: number, code: string, more: object = {}): Promise<ExecResponse[]> =>
  Promise.all(
    Array.from({ length: count }, () => attacker.exec({ lang: "py", code: PYTHON + code, ...more })),
  );

const INIT = `
cpu = max(os.sched_getaffinity(0))
for hostile in (lambda: os.sched_setaffinity(1, {cpu}), lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))):
    try: hostile()
    except OSError: pass
os.sched_setaffinity(0, {cpu})
for n in range(60):
    if os.fork() == 0:
        while True: pass
while True: pass
`;
const IMAGE = `
import fcntl, time
until = time.monotonic() + 4
held = []
for folder in (os.path.dirname(os.__file__), "/usr/bin", "/lib/x86_64-linux-gnu", "/dev"):
    for entry in os.scandir(folder):
        try:
            if not entry.is_dir():
                held.append(os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: pass
        if len(held) > 900: break
while time.monotonic() < until:
    for fd in held:
        for flush in (os.fsync, lambda fd: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)):
            try: flush(fd)
            except OSError: pass
show(len(held))
`;
const MEMORY = `
import mmap
for place in ("/mnt/data/x", "/tmp/x", "/dev/shm/x"):
    try:
        with open(place, "wb") as file:
            while True: file.write(b"x" * (1 << 20))
    except OSError: pass
held = []
while True: held.append(b"x" * (1 << 20))
`;

test.each<[string, () => Promise<void>]>([
  ["a tool call of 65,000 numbers where another one was recorded", () => differentCall("[0] * 65_000")],
  [
    "a tool call of 900 levels where another one was recorded",
    () => differentCall(`__import__("json").loads("[" * 900 + "]" * 900)`),
  ],
  ["more pauses than all callers together may have", () => pauseMany(PAUSES)],
  [
    "forms with headers that take long to read",
    async () => {
      for (const header of [
        `X-A: b${" ".repeat(15_000)}c`,
        `Content-Type: text/plain${"; ".repeat(7000)}x`,
      ]) {
        const answer = await attacker.send("POST", "/upload", form(header));
        expect(answer.status, answer.text).toBe(400);
      }
    },
  ],
  [
    "bodies of very many and of very deep values",
    async () => {
      for (const text of [`[${"{},".repeat(1_300_000)}0]`, `${"[".repeat(2e6)}${"]".repeat(2e6)}`]) {
        for (const path of ["/exec", "/exec/programmatic"]) {
          const body = `{"lang":"py","code":"1","x":${text}}`;
          const headers = { "content-type": "application/json", "idempotency-key": randomUUID() };
          const answer = await attacker.send("POST", path, { body, headers });
          expect([answer.status, answer.refusal.error]).toEqual([400, "invalid_json"]);
        }
      }
    },
  ],
  [
    "bodies that never end",
    async () => {
      const sockets = [...(await neverEnding("/exec", 40)), ...(await neverEnding("/exec/programmatic", 40))];
      await sleep(2000);
      for (const socket of sockets) socket.destroy();
    },
  ],
  [
    "processes that slow the first process of their jail",
    async () => {
      const answers = await programs(4, INIT, { run_timeout: 1500 });
      expect(answers.map(({ status }) => status)).toEqual(["TO", "TO", "TO", "TO"]);
    },
  ],
  [
    "locks on files of the image, and flushes of them",
    async () => {
      const answers = await programs(4, IMAGE, { run_timeout: slow(20_000) });
      expect(answers.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    },
  ],
  [
    "as much memory as programs may have",
    async () => {
      const answers = await programs(6, MEMORY, { run_timeout: slow(20_000) });
      expect(answers.filter(({ code }) => code === 0)).toEqual([]);
    },
  ],
])("five callers do not notice %s", async (_attack, attack) => {
  await underAttack(attack);
});
