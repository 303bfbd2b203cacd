/**
 * The jail for a request: one that waits warm, one that is made warm now, or a cold one. A request never waits for a missing zygote or for a
 * pre-started interpreter, and a warm start that fails becomes a cold one. Waiting jails give way to requests that find none.
 */
import { prestartedPoolSize, warmPoolSize } from "@svc/contracts";
import { JailRun } from "@svc/jail-client";
import type { Config, Log } from "@svc/service-kit";
import type { LimitOverrides } from "@svc/service-kit/config/limit-overrides";
import type { Program } from "../execution/program.ts";
import type { Runtimes } from "../execution/runtimes.ts";
import { type Kind, kindFor, kindsOf } from "./kinds.ts";
import { WarmPool } from "./pool.ts";

/** As long as a zygote lives: the zygote whose copy a program gets is at most twice as old. */
const MAX_AGE_MS = 600_000;
/** A request without a jail after this time makes a waiting one give way. */
const GIVE_WAY_MS = 100;
/** Delay before the next copy is made: by then the request that took the last one should have its answer. */
const COPY_AFTER_MS = 8;

export class WarmJails {
  readonly #config: Config;
  readonly #log: Log;
  readonly #kinds: readonly Kind[];
  readonly #pools: ReadonlyMap<string, WarmPool>;

  constructor(config: Config, runtimes: Runtimes, overrides: LimitOverrides, log: Log) {
    this.#config = config;
    this.#log = log;
    this.#kinds = config.SANDBOX_WARM_START ? kindsOf(runtimes, config, overrides) : [];
    this.#pools = new Map(this.#kinds.map((kind) => [kind.name, this.#poolOf(kind)]));
  }

  #poolOf({ name, prestarted, fill }: Kind): WarmPool {
    const size = warmPoolSize(this.#config);
    return new WarmPool({
      socket: this.#config.SANDBOX_JAIL_SOCKET,
      fill,
      least: Math.min(prestarted?.least ?? size, size),
      mayGrow: () => prestarted !== undefined && this.#mayPrestart(size),
      refillMs: prestarted?.refillMs ?? COPY_AFTER_MS,
      maxAgeMs: MAX_AGE_MS,
      onFailure: (error) => this.#log.warn({ err: error, kind: name }, "filling the warm pool failed"),
    });
  }

  /** All pre-started interpreters together are bounded: one can be tens of megabytes. */
  #mayPrestart(size: number): boolean {
    const prestarted = this.#kinds.flatMap(({ name, prestarted }) =>
      prestarted ? [{ name, least: prestarted.least }] : [],
    );
    const wanted = prestarted.reduce((sum, { name }) => sum + (this.#pools.get(name)?.wanted ?? 0), 0);
    const least = prestarted.map((kind) => kind.least);
    return wanted < prestartedPoolSize(size, least);
  }

  start(): void {
    for (const pool of this.#pools.values()) pool.start();
  }

  counts(): { zygote: string; waiting: number; wanted: number }[] {
    return [...this.#pools].map(([zygote, { waiting, wanted }]) => ({ zygote, waiting, wanted }));
  }

  /** Number of jails of all kinds that wait for a program. */
  get waiting(): number {
    return this.counts().reduce((sum, { waiting }) => sum + waiting, 0);
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close();
  }

  /** Opens a jail for the program. The signal's abort ends the jail. */
  async open(program: Program, signal: AbortSignal): Promise<JailRun> {
    signal.throwIfAborted();
    const kind = program.hasOwnEnvironment ? undefined : kindFor(program, this.#kinds);
    const waiting = kind && this.#pools.get(kind.name)?.take();
    if (waiting !== undefined) {
      waiting.tie(signal);
      return waiting;
    }
    const jail = await this.#open(signal);
    if (kind === undefined || kind.prestarted !== undefined) return jail;
    return (await this.#isUsable(jail, kind, signal)) ? jail : this.#open(signal);
  }

  /** Whether the jail is usable: warm or, when there is no zygote now, cold. */
  async #isUsable(jail: JailRun, { name, fill }: Kind, signal: AbortSignal): Promise<boolean> {
    try {
      await fill(jail);
      return true;
    } catch (error) {
      jail.close();
      signal.throwIfAborted();
      this.#log.warn({ err: error, kind: name }, "warm start failed; starting cold");
      return false;
    }
  }

  async #open(signal: AbortSignal): Promise<JailRun> {
    const timer = setInterval(() => this.#giveWay(), GIVE_WAY_MS);
    try {
      return await JailRun.open(this.#config.SANDBOX_JAIL_SOCKET, signal);
    } finally {
      clearInterval(timer);
    }
  }

  #giveWay(): void {
    const fullest = [...this.#pools.values()].sort((a, b) => b.waiting - a.waiting)[0];
    fullest?.giveWay();
  }
}
