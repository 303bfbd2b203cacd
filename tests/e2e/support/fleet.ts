/**
 * Two machines that take jobs from the same queues. Each worker takes one job of each queue at a time: a program that stopped itself
 * keeps one machine's worker busy, so that the other machine runs what comes next. Nothing depends on who is faster.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { newId, SNAPSHOT_NAME } from "@svc/contracts";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { readOrEmpty } from "@svc/test-kit/system/read-file";
import {
  type SecondMachine,
  type SecondMachineOptions,
  startSecondMachine,
} from "@svc/test-kit/system/second-machine";
import { STOP, stoppedProgramsOf } from "@svc/test-kit/system/stopped-programs";
import { type System, startSystem } from "@svc/test-kit/system/system";

/** Without luck, however busy this machine is. */
export const SOON_MS = 60_000;

export const FLEET_ENV = {
  SVC_PERSIST_SESSIONS: "true",
  ...OPEN_LIMITS,
  PYTHON_CONCURRENCY: "1",
  OTHER_CONCURRENCY: "1",
  // Sweeps all the time.
  SVC_SESSION_STATE_SWEEP_SECONDS: "1",
  SANDBOX_MAX_CONCURRENT_JOBS: "3",
};

const HOLDERS = [
  { lang: "py", code: STOP.py },
  { lang: "bash", code: STOP.bash },
] as const;

/** A run that keeps a machine's worker of one queue busy. */
interface Hold {
  machine: number;
  release: () => Promise<void>;
}

export class Fleet {
  readonly system: System;
  readonly api: Api;
  #second: SecondMachine;
  #stopped: (() => number[])[];
  /** By the language that names the queue. */
  readonly #holds = new Map<string, Hold>();

  private constructor(system: System, second: SecondMachine) {
    this.system = system;
    this.api = new Api(system.url);
    this.#second = second;
    this.#stopped = this.#instances.map(stoppedProgramsOf);
  }

  static async start(): Promise<Fleet> {
    const system = await startSystem({ env: FLEET_ENV });
    try {
      return new Fleet(system, await startSecondMachine(system, { env: FLEET_ENV }));
    } catch (error) {
      await system.stop();
      throw error;
    }
  }

  get #instances() {
    return [this.system.instance, this.#second.instance];
  }

  /** Ends the second machine, and starts another one in its place. */
  async replaceSecond(own: SecondMachineOptions["own"]): Promise<string[]> {
    await this.release();
    const left = await this.#second.stop();
    this.#second = await startSecondMachine(this.system, { env: FLEET_ENV, ...(own && { own }) });
    this.#stopped = this.#instances.map(stoppedProgramsOf);
    return left;
  }

  /** The pids of stopped programs, for each machine. */
  stopped(): number[][] {
    return this.#stopped.map((list) => list());
  }

  /** The pids of stopped programs of this machine, once there are some. */
  async stoppedOn(machine: number): Promise<number[]> {
    const pids = () => this.stopped()[machine] ?? [];
    await until(() => pids().length > 0, SOON_MS);
    return pids();
  }

  /** From here on this machine runs what is asked for, and no other. */
  async turnTo(machine: number): Promise<void> {
    for (const { lang, code } of HOLDERS) {
      const hold = this.#holds.get(lang) ?? (await this.#hold(lang, code));
      this.#holds.set(lang, hold);
      if (hold.machine !== machine) continue;
      // The machine is held: the next run that holds one holds the other.
      this.#holds.set(lang, await this.#hold(lang, code));
      await hold.release();
    }
  }

  /** Any machine may run what is asked for. */
  async release(): Promise<void> {
    await Promise.all([...this.#holds.values()].map((hold) => hold.release()));
    this.#holds.clear();
  }

  async #hold(lang: string, code: string): Promise<Hold> {
    const before = new Set(this.stopped().flat());
    const leave = new AbortController();
    const input: ExecInput = { lang, code, runtime_session_hint: `hold-${lang}`, run_timeout: 300_000 };
    const answer = this.api.tryExec(input, { signal: leave.signal }).then(
      ({ text }) => text,
      (error: Error) => error.message,
    );
    let machine = -1;
    const isHeld = () => {
      machine = this.stopped().findIndex((pids) => pids.some((pid) => !before.has(pid)));
      return machine >= 0;
    };
    await until(isHeld, SOON_MS, () => ({ lang, stopped: this.stopped() }));
    const release = async () => {
      leave.abort();
      await answer;
    };
    return { machine, release };
  }

  /** Runs a program on this machine; the logs of its worker and of its runner prove that it was there. */
  async execOn(machine: number, input: ExecInput) {
    await this.turnTo(machine);
    const id = `fleet-${newId()}`;
    const answer = await this.api.exec(input, { headers: { "x-request-id": id } });
    const places = () => ["worker", "runner"].map((component) => this.#placeOf(component, id));
    await until(
      () => places().every((place) => place === machine),
      SOON_MS,
      () => ({ machine, places: places() }),
    );
    return answer;
  }

  /** The machine whose component wrote the line of the run; -1: none yet. */
  #placeOf(component: string, requestId: string): number {
    return this.#instances.findIndex(({ logsDir }) =>
      readFileSync(join(logsDir, `${component}.log`), "utf8")
        .split("\n")
        .some((line) => line.includes(requestId) && JSON.parse(line).msg === "run"),
    );
  }

  /** How many snapshots of sessions the storage has: the last bytes of each file say how it is called. */
  storedSnapshots(): number {
    const objects = join(this.system.instance.dataDir, "objects/sessions");
    const files = readdirSync(objects, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    return files.filter(({ parentPath, name }) => readOrEmpty(join(parentPath, name)).includes(SNAPSHOT_NAME))
      .length;
  }

  /** The text of the metrics of a machine's worker. */
  async workerMetrics(machine: number): Promise<string> {
    const port = this.#instances[machine]?.ports.worker;
    return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  }

  /** Answers what both machines left behind. */
  async stop(): Promise<string[]> {
    await this.release();
    return [...(await this.#second.stop()), ...(await this.system.stop())];
  }
}
