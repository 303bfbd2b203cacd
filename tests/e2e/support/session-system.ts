/**
 * A system that keeps sessions, each component a process of its own, over a Redis that survives a crash; and a program of a session
 * that waits where a test wants it to.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ExecResponse } from "@svc/contracts";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api, type ExecInput } from "@svc/test-kit/system/api";
import { guestsWith, replaceInGuests } from "@svc/test-kit/system/guest-memory";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { Redis } from "ioredis";
import { type RedisGate, startRedisGate } from "./redis-gate.ts";

export const WITHIN_MS = slow(60_000);
export const SNAPSHOTS = "svc:sessions:snapshots";

export interface SessionSystem {
  system: System;
  api: Api;
  server: PrivateRedis;
  gate: RedisGate;
  /** Beside the gate. */
  redis: Redis;
  /** The settings that the system was started with. */
  env: Readonly<Record<string, string>>;
  /** Ends it, and answers what it left. */
  stop: () => Promise<string[]>;
}

export async function startSessionSystem(
  more: Readonly<Record<string, string>> = {},
): Promise<SessionSystem> {
  const server = await startRedis({ kept: true });
  const gate = await startRedisGate(server.socket);
  const redis = new Redis(server.socket).on("error", () => {});
  const env = {
    ...OPEN_LIMITS,
    ...ONE_BY_ONE,
    SVC_PERSIST_SESSIONS: "true",
    REDIS_URL: `redis://127.0.0.1:${gate.port}`,
    ...more,
  };
  const end = async () => {
    redis.disconnect();
    await gate.stop();
    await server.stop();
  };
  const system = await startSystem({ env }).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  const stop = async () => {
    const left = await system.stop();
    await end();
    return left;
  };
  return { system, api: new Api(system.url), server, gate, redis, env, stop };
}

/** Waits while its memory says so: in a microVM there is no process that a test could end. */
const WAITS = `import sys, time
word = bytearray(sys.argv[1].encode() + b" waits")
while word.endswith(b" waits"): time.sleep(0.05)`;

/** A step of a session: true only when what it finds is whole. It leaves no outputs. `$1`: the program waits for `goOn`. */
const STEP = `set -e
mkdir -p .h; touch .h/a .h/b
test ! -e .h/sum || sha256sum --quiet -c .h/sum
test "$(wc -l < .h/a)" = "$(wc -l < .h/b)"
echo "$(wc -l < .h/a) before"
echo 1 >> .h/a
head -c 300000 /dev/urandom > .h/blob
sha256sum .h/blob > .h/sum
test -z "$1" || python3 -c '${WAITS}' "$1" 2>/dev/null || true
echo 1 >> .h/b`;

let made = 0;

export interface TestSession {
  hint: string;
  /** The answer to any run. */
  run: (input: ExecInput) => Promise<ExecResponse>;
  /** The answer to one more step. */
  tryStep: () => Promise<ExecResponse>;
  /** One more step, which must be kept; the number of steps that it found. */
  step: () => Promise<number>;
  /** Starts a step that waits in the middle of its program, which goes on with `more`. */
  begin: (more?: string) => WaitingStep;
  /** The key of its record, and the record. */
  key: () => Promise<string>;
  record: () => Promise<Record<string, string>>;
}

export interface WaitingStep {
  /** Undefined: the connection to the API was lost, or the client left. */
  answer: Promise<Answer | undefined>;
  /** The program waits. */
  waits: () => Promise<void>;
  /** Lets every program of this step go on, from now on. */
  goOn: () => void;
  /** No process of the program is left; in a microVM, none that waits. */
  isGone: () => boolean;
  leave: () => void;
}

/** A session with one state: that of its first step. */
export async function newSession({ api, redis }: Pick<SessionSystem, "api" | "redis">): Promise<TestSession> {
  const hint = `session-${++made}`;
  const run = (input: ExecInput) => api.exec({ runtime_session_hint: hint, ...input });
  const tryStep = () => run({ lang: "bash", code: STEP });
  const step = async () => {
    const answer = await tryStep();
    if (answer.code !== 0 || answer.session_state_persisted !== true) throw new Error(JSON.stringify(answer));
    return Number.parseInt(answer.stdout, 10);
  };
  await step();
  const key = async () => (await redis.keys(`sessionstate:*:${hint}`))[0] ?? "";
  return {
    hint,
    run,
    step,
    tryStep,
    begin: (more = "") => waitingStep(api, hint, more),
    key,
    record: async () => redis.hgetall(await key()),
  };
}

function waitingStep(api: Api, hint: string, more: string): WaitingStep {
  const marker = newMarker();
  const client = new AbortController();
  let ended = false;
  const input = { lang: "bash", code: `${STEP}\n${more}`, args: [marker], runtime_session_hint: hint };
  const answer = api
    .tryExec(input, { signal: client.signal })
    .catch(() => undefined)
    .finally(() => {
      ended = true;
    });
  return {
    answer,
    waits: () => until(() => doWait(marker), WITHIN_MS),
    goOn: () => {
      const timer = setInterval(() => {
        letGoOn(marker);
        if (ended) clearInterval(timer);
      }, LOOK_MS);
    },
    // The memory of a microVM still holds what a program there had.
    isGone: () => (IN_GUESTS ? !doWait(marker) : processesWith(marker).length === 0),
    leave: () => client.abort(),
  };
}

/** Memory is more to look through than names of processes. */
const LOOK_MS = IN_GUESTS ? 1000 : 20;
const waitingWord = (marker: string) => `${marker} waits`;
const doWait = (marker: string) =>
  (IN_GUESTS ? guestsWith(waitingWord(marker)) : holdersOf(marker)).length > 0;

function letGoOn(marker: string): void {
  if (IN_GUESTS) replaceInGuests(waitingWord(marker), `${marker} ended`);
  else for (const pid of holdersOf(marker)) endIfThere(pid);
}

/** A process that was seen may have ended meanwhile. */
function endIfThere(pid: number): void {
  try {
    killProcess(pid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Processes that a program of the step waits for. */
function holdersOf(marker: string): number[] {
  return readdirSync("/proc")
    .filter((name) => {
      if (!/^\d+$/.test(name) || name === String(process.pid)) return false;
      try {
        const words = readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0");
        return words.includes(marker) && words.includes(WAITS);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The most bytes that wait on a connection to this port of this machine for its server to read them. */
export function unreadBytes(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const ESTABLISHED = "01";
  const queues = readFileSync("/proc/net/tcp", "latin1")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(`:${hex}`) && state === ESTABLISHED)
    .map(([, , , , queue]) => Number.parseInt(queue?.split(":")[1] ?? "0", 16));
  return Math.max(0, ...queues);
}

/** Paths of all stored objects. */
export function storedObjects({ system }: Pick<SessionSystem, "system">): string[] {
  const root = join(system.instance.dataDir, "objects/sessions");
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

/** Where the snapshot of a session lies. */
export function snapshotPath(
  { system }: Pick<SessionSystem, "system">,
  record: Record<string, string>,
): string {
  return join(
    system.instance.dataDir,
    "objects/sessions",
    record.snapshot_session ?? "",
    record.snapshot_id ?? "",
  );
}
