/** Brings the faults of a schedule over a running system, each at its time, and takes them back. */
import { rmSync } from "node:fs";
import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";
import { isAlive, killProcess } from "@svc/test-kit/jail/host";
import type { ComponentOfChaos, Fault } from "./schedule.ts";
import { type ChaosSystem, redisFolder } from "./system.ts";

/** How long Redis is away when it is killed: its clients notice. */
const REDIS_AWAY_MS = 300;
const GONE_LOOK_MS = 5;

/**
 * Settles when the last fault was taken back, with all of them as they were: on a busy machine each lasts longer than it should.
 * `began`: when the load began, by performance.now().
 */
export async function inject(
  chaos: ChaosSystem,
  faults: readonly Fault[],
  began: number,
): Promise<readonly Fault[]> {
  const redis = new RedisFaults(chaos);
  const now = () => performance.now() - began;
  return Promise.all(
    faults.map(async (fault) => {
      await sleep(Math.max(0, fault.atMs - now()));
      const takeBack = await bring(chaos, redis, fault);
      await sleep(Math.max(0, fault.atMs + fault.forMs - now()));
      takeBack();
      return { ...fault, forMs: now() - fault.atMs };
    }),
  );
}

const nothing = () => undefined;

async function bring(chaos: ChaosSystem, redis: RedisFaults, fault: Fault): Promise<() => void> {
  const { links, disks, clocks } = chaos;
  switch (fault.what) {
    case "kill":
      if (fault.where === "redis") await redis.restart({ isKept: true });
      else await kill(chaos, fault.where);
      return nothing;
    case "empty":
      await redis.restart({ isKept: false });
      return nothing;
    case "stop":
      return stopped(chaos, fault.where);
    case "cut":
      return links.cut(fault.where);
    case "hang":
      return links.hold(fault.where);
    case "slow":
      return links.slow(fault.where, fault.byMs);
    case "fill":
      return disks[fault.where].fill();
    case "step":
      return clocks.step(fault.where, fault.byMs);
  }
}

/** A component that waits for its next start has no process. */
function ifItRuns({ system, redis }: ChaosSystem, name: ComponentOfChaos, work: (pid: number) => void): void {
  let pid: number;
  try {
    pid = name === "redis" ? redis.pid : system.pid(name);
  } catch {
    return;
  }
  signalled(() => work(pid));
}

/** Settles when the process is gone, and the load in this process has seen its connections end. */
async function kill(chaos: ChaosSystem, name: ComponentOfChaos): Promise<void> {
  let killed: number | undefined;
  ifItRuns(chaos, name, (pid) => {
    killProcess(pid);
    killed = pid;
  });
  while (killed !== undefined && isAlive(killed)) await sleep(GONE_LOOK_MS);
  await immediate();
}

function stopped(chaos: ChaosSystem, name: ComponentOfChaos): () => void {
  let goOn: () => void = nothing;
  ifItRuns(chaos, name, (pid) => {
    process.kill(pid, "SIGSTOP");
    goOn = () => signalled(() => process.kill(pid, "SIGCONT"));
  });
  return goOn;
}

/** The process may have ended meanwhile. */
function signalled(send: () => void): void {
  try {
    send();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Our Redis has no supervisor: one restart comes after the other. */
class RedisFaults {
  readonly #chaos: ChaosSystem;
  #last: Promise<void> = Promise.resolve();

  constructor(chaos: ChaosSystem) {
    this.#chaos = chaos;
  }

  restart({ isKept }: { isKept: boolean }): Promise<void> {
    this.#last = this.#last.then(() => this.#restart(isKept));
    return this.#last;
  }

  async #restart(isKept: boolean): Promise<void> {
    const { redis } = this.#chaos;
    await redis.kill();
    if (!isKept) rmSync(redisFolder(redis), { recursive: true, force: true });
    await sleep(REDIS_AWAY_MS);
    await redis.start();
  }
}
