/**
 * The programs with tools on this runner, one per execution. Paused programs are kept until they resume, for
 * TOOL_CALL_REQUEST_TIMEOUT at most and within limits of number and memory; others are evicted (eviction.ts). An eviction
 * loses no result: the next resume does not find the program, and it is run again from the top.
 */
import { ServiceError } from "@svc/contracts";
import type { Log } from "@svc/service-kit";
import type { EvictionCause, RunnerMetrics } from "../metrics.ts";
import { type Machine, machineMemory, type PauseLimits, selectEvictions } from "./eviction.ts";
import type { ToolProgram } from "./tool-program.ts";

/** How often memory is checked while any program is paused. */
const CHECK_MS = 2000;

export interface RegistryOptions extends PauseLimits {
  longestPauseMs: number;
  memory?: () => Machine;
}

type Kept = Pick<
  ToolProgram,
  "executionId" | "principal" | "round" | "memoryBytes" | "pausedAtMs" | "kill" | "onUnanswerable" | "counted"
>;

export class ProgramRegistry<P extends Kept = ToolProgram> {
  readonly #options: RegistryOptions;
  readonly #metrics: Pick<RunnerMetrics, "evicted">;
  readonly #log: Log;
  readonly #all = new Map<string, P>();
  readonly #paused = new Map<P, NodeJS.Timeout>();
  #checks: NodeJS.Timeout | undefined;

  constructor(options: RegistryOptions, metrics: Pick<RunnerMetrics, "evicted">, log: Log) {
    this.#options = options;
    this.#metrics = metrics;
    this.#log = log;
  }

  get paused(): number {
    return this.#paused.size;
  }

  /** Adds a program that starts. An older attempt of the same execution is discarded. */
  begin(program: P): void {
    this.discard(program.executionId);
    this.#all.set(program.executionId, program);
  }

  /** Removes a program that ended. */
  end(program: P): void {
    clearTimeout(this.#paused.get(program));
    this.#paused.delete(program);
    if (this.#all.get(program.executionId) === program) this.#all.delete(program.executionId);
  }

  /** Keeps a program that is paused since `pausedAtMs`. */
  keep(program: P): void {
    // It was discarded while it paused.
    if (this.#all.get(program.executionId) !== program) {
      abandon(program);
      return;
    }
    const leftMs = program.pausedAtMs + this.#options.longestPauseMs - performance.now();
    const timer = setTimeout(() => this.#evict(program, "timeout"), Math.max(0, leftMs)).unref();
    this.#paused.set(program, timer);
    program.onUnanswerable = () => this.#evict(program, "unanswerable");
    this.#makeRoom();
    this.#checks ??= setInterval(() => this.#check(), CHECK_MS).unref();
  }

  /** Takes out a paused program, if `round` is its next round. The caller resumes it or keeps it again. */
  take(executionId: string, round: number): P {
    const program = this.#all.get(executionId);
    const timer = program === undefined ? undefined : this.#paused.get(program);
    if (program === undefined || timer === undefined || program.round + 1 !== round) {
      throw new ServiceError("execution_not_found");
    }
    clearTimeout(timer);
    this.#paused.delete(program);
    program.onUnanswerable = undefined;
    return program;
  }

  /** Kills and removes an execution's program in any state. False: there is none. */
  discard(executionId: string): boolean {
    const program = this.#all.get(executionId);
    if (program === undefined) return false;
    const isPaused = this.#paused.has(program);
    this.end(program);
    // A running program is counted at the end of its round.
    if (isPaused) abandon(program);
    else program.kill(new ServiceError("execution_not_found"));
    return true;
  }

  /** Called by a timer; a failed check is repeated at the next one. */
  #check(): void {
    try {
      this.#makeRoom();
    } catch (err) {
      this.#log.warn({ err }, "checking the memory of paused programs failed");
    }
  }

  #makeRoom(): void {
    if (this.#paused.size === 0) {
      clearInterval(this.#checks);
      this.#checks = undefined;
      return;
    }
    const memory = (this.#options.memory ?? machineMemory)();
    for (const { program, cause } of selectEvictions(this.#paused.keys(), this.#options, memory)) {
      this.#evict(program, cause);
    }
  }

  #evict(program: P, cause: EvictionCause): void {
    if (!this.#paused.has(program)) return;
    this.#metrics.evicted(cause);
    this.#log.info({ execution_id: program.executionId, cause }, "evicted a paused program");
    this.end(program);
    abandon(program);
  }

  /** Kills all. */
  close(): void {
    clearInterval(this.#checks);
    for (const executionId of [...this.#all.keys()]) this.discard(executionId);
  }
}

function abandon(program: Kept): void {
  program.counted.abandoned();
  program.kill(new ServiceError("execution_not_found"));
}
