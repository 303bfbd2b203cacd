/**
 * The programs with tools that this runner has, one per execution. Paused ones are kept until they go on, for
 * TOOL_CALL_REQUEST_TIMEOUT at most, as many and as large as fit; what does not fit is killed and forgotten, that of the
 * principal with most of them first. Nobody loses a result by that: the next resume finds nothing here and the program is run again from the top.
 */
import { ServiceError } from "@svc/contracts";
import type { Log } from "@svc/service-kit";
import type { EvictionCause, RunnerMetrics } from "../metrics.ts";
import { type Machine, machineMemory, type PauseLimits, victims } from "./pressure.ts";
import type { ToolProgram } from "./tool-program.ts";

/** How often memory is looked at while anything is paused. */
const LOOK_MS = 2000;

export interface ProgramsOptions extends PauseLimits {
  longestPauseMs: number;
  memory?: () => Machine;
}

type Kept = Pick<
  ToolProgram,
  "executionId" | "principal" | "round" | "memoryBytes" | "pausedAtMs" | "kill" | "onUnanswerable" | "counted"
>;

export class Programs<P extends Kept = ToolProgram> {
  readonly #options: ProgramsOptions;
  readonly #metrics: Pick<RunnerMetrics, "evicted">;
  readonly #log: Log;
  readonly #all = new Map<string, P>();
  readonly #paused = new Map<P, NodeJS.Timeout>();
  #looking: NodeJS.Timeout | undefined;

  constructor(options: ProgramsOptions, metrics: Pick<RunnerMetrics, "evicted">, log: Log) {
    this.#options = options;
    this.#metrics = metrics;
    this.#log = log;
  }

  get paused(): number {
    return this.#paused.size;
  }

  /** A program begins. An older attempt of the same execution is abandoned. */
  begin(program: P): void {
    this.discard(program.executionId);
    this.#all.set(program.executionId, program);
  }

  /** A program has ended, however. */
  end(program: P): void {
    clearTimeout(this.#paused.get(program));
    this.#paused.delete(program);
    if (this.#all.get(program.executionId) === program) this.#all.delete(program.executionId);
  }

  /** Keeps a program that is paused since `pausedAtMs`. */
  keep(program: P): void {
    // It was abandoned in its last moments.
    if (this.#all.get(program.executionId) !== program) {
      abandon(program);
      return;
    }
    const leftMs = program.pausedAtMs + this.#options.longestPauseMs - performance.now();
    const timer = setTimeout(() => this.#evict(program, "timeout"), Math.max(0, leftMs)).unref();
    this.#paused.set(program, timer);
    program.onUnanswerable = () => this.#evict(program, "unanswerable");
    this.#makeRoom();
    this.#looking ??= setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** The paused program whose next round this is, to go on or to be kept again. */
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

  /** Kills and forgets an execution's program, whatever it does. False: there is none. */
  discard(executionId: string): boolean {
    const program = this.#all.get(executionId);
    if (program === undefined) return false;
    const isPaused = this.#paused.has(program);
    this.end(program);
    // One that runs is counted by whoever makes its round.
    if (isPaused) abandon(program);
    else program.kill(new ServiceError("execution_not_found"));
    return true;
  }

  /** Called by a timer: what goes wrong is tried again at the next look. */
  #look(): void {
    try {
      this.#makeRoom();
    } catch (err) {
      this.#log.warn({ err }, "memory of paused programs could not be checked");
    }
  }

  #makeRoom(): void {
    if (this.#paused.size === 0) {
      clearInterval(this.#looking);
      this.#looking = undefined;
      return;
    }
    const memory = (this.#options.memory ?? machineMemory)();
    for (const { program, cause } of victims(this.#paused.keys(), this.#options, memory)) {
      this.#evict(program, cause);
    }
  }

  #evict(program: P, cause: EvictionCause): void {
    if (!this.#paused.has(program)) return;
    this.#metrics.evicted(cause);
    this.#log.info({ execution_id: program.executionId, cause }, "a paused program is evicted");
    this.end(program);
    abandon(program);
  }

  /** Kills all. */
  close(): void {
    clearInterval(this.#looking);
    for (const executionId of [...this.#all.keys()]) this.discard(executionId);
  }
}

function abandon(program: Kept): void {
  program.counted.abandoned();
  program.kill(new ServiceError("execution_not_found"));
}
