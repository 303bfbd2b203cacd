/**
 * The jail for a request: one that waits warm, or one that is made warm now, or a cold one. A request never waits for a
 * zygote that is not there, and a warm start that fails is a cold one. Jails that wait give way to requests that find none.
 */
import { warmPoolSize } from "@svc/contracts";
import { JailRun } from "@svc/jail-client";
import type { Config, Log } from "@svc/service-kit";
import type { Program } from "../program.ts";
import type { Runtimes, Zygote } from "../runtimes.ts";
import { WarmPool } from "./pool.ts";

/** As long as a zygote lives: what waits is at most one generation behind. */
const MAX_AGE_MS = 600_000;
/** Without a jail after this time, one that waits gives way. */
const GIVE_WAY_MS = 100;
/** Only the start of a program is looked at; who imports, does it there. */
const LOOKED_AT = 256 * 1024;

export class WarmJails {
  readonly #config: Config;
  readonly #log: Log;
  readonly #zygotes: readonly Zygote[];
  readonly #pools: ReadonlyMap<string, WarmPool>;

  constructor(config: Config, runtimes: Runtimes, log: Log) {
    this.#config = config;
    this.#log = log;
    this.#zygotes = config.SANDBOX_WARM_START ? runtimes.zygotes() : [];
    this.#pools = new Map(
      this.#zygotes.map(({ name }) => [
        name,
        new WarmPool({
          socket: config.SANDBOX_JAIL_SOCKET,
          zygote: name,
          size: warmPoolSize(config),
          maxAgeMs: MAX_AGE_MS,
          onFailure: (error) => log.warn({ err: error, zygote: name }, "no jail can be made warm"),
        }),
      ]),
    );
  }

  start(): void {
    for (const pool of this.#pools.values()) pool.start();
  }

  counts(): { zygote: string; waiting: number; wanted: number }[] {
    const wanted = warmPoolSize(this.#config);
    return [...this.#pools].map(([zygote, { waiting }]) => ({ zygote, waiting, wanted }));
  }

  close(): void {
    for (const pool of this.#pools.values()) pool.close();
  }

  /** A jail for the program; the signal's abort is its end. */
  async open(program: Program, signal: AbortSignal): Promise<JailRun> {
    signal.throwIfAborted();
    const zygote = zygoteFor(program, this.#zygotes);
    const waiting = zygote && this.#pools.get(zygote.name)?.take();
    if (waiting !== undefined) {
      waiting.tie(signal);
      return waiting;
    }
    const jail = await this.#open(signal);
    return zygote === undefined || (await this.#isUsable(jail, zygote, signal)) ? jail : this.#open(signal);
  }

  /** Whether the jail is of use, warm or, when there is no zygote now, cold. */
  async #isUsable(jail: JailRun, { name }: Zygote, signal: AbortSignal): Promise<boolean> {
    try {
      await jail.warm(name);
      return true;
    } catch (error) {
      jail.close();
      signal.throwIfAborted();
      this.#log.warn({ err: error, zygote: name }, "a warm start failed");
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

/** The last zygote of the program's command whose words the program contains; one without words is for all. */
export function zygoteFor(
  { argv, contents }: Pick<Program, "argv" | "contents">,
  zygotes: readonly Zygote[],
): Zygote | undefined {
  const source = contents[0]?.bytes.subarray(0, LOOKED_AT) ?? Buffer.alloc(0);
  return zygotes.findLast(
    (zygote) =>
      zygote.argv[0] === argv[0] &&
      (zygote.words.length === 0 || zygote.words.some((word) => source.includes(word))),
  );
}
