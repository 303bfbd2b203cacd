/**
 * Jails of one kind, each with a process that has started already, that wait for one job each. They are made one after another, outside the path of
 * requests. Jails near their age limit are replaced one at a time, so that the rest keep waiting; none beyond the limit is given out. Failures are
 * retried with exponential backoff. The pool grows within its bound when requests empty it, and shrinks to `least` after a quiet minute.
 */
import { JailRun } from "@svc/jail-client";

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;
const QUIET_MS = 60_000;
/** Fractions of the age limit: from OLD on a jail is replaced, and LOOK is the time between checks. */
const OLD = 0.9;
const LOOK = 0.1;

export interface WarmPoolOptions {
  socket: string;
  /** Turns a jail into one of this kind; false when that is not possible now. */
  fill: (jail: JailRun) => Promise<boolean>;
  least: number;
  mayGrow: () => boolean;
  /** Time between a request that takes a jail and the making of the next. */
  refillMs: number;
  /** How long a jail may wait. */
  maxAgeMs: number;
  /** Time without a request after which the pool shrinks. */
  quietMs?: number;
  onFailure: (error: unknown) => void;
}

interface WaitingJail {
  run: JailRun;
  since: number;
}

export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #jails: WaitingJail[] = [];
  readonly #closing = new AbortController();
  #filling = false;
  #retryMs = FIRST_RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #ageing: NodeJS.Timeout | undefined;
  #quiet: NodeJS.Timeout | undefined;
  #wanted: number;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
    this.#wanted = options.least;
  }

  get wanted(): number {
    return this.#wanted;
  }

  get waiting(): number {
    return this.#jails.length;
  }

  /** Starts to fill the pool, and keeps it full. */
  start(): void {
    this.#ageing = setInterval(() => this.#fill(), this.#options.maxAgeMs * LOOK).unref();
    this.#fill();
  }

  /** Takes the jail that has waited longest; the caller owns it from here on. */
  take(): JailRun | undefined {
    while (this.#isOlder(this.#options.maxAgeMs)) this.#drop();
    const jail = this.#jails.shift();
    if (this.#jails.length === 0 && this.#options.mayGrow()) this.#wanted++;
    this.#quiet ??= setTimeout(() => this.#shrink(), this.#options.quietMs ?? QUIET_MS).unref();
    this.#quiet.refresh();
    if (this.#options.refillMs === 0) this.#fill();
    else this.#fillAfter(this.#options.refillMs);
    return jail?.run;
  }

  #shrink(): void {
    this.#wanted = this.#options.least;
    for (const { run } of this.#jails.splice(this.#wanted)) run.close();
  }

  /** Gives one jail up, for a request that finds none. */
  giveWay(): void {
    if (this.#jails.length === 0) return;
    this.#drop();
    this.#fillLater();
  }

  close(): void {
    this.#closing.abort(new Error("the runner stops"));
    clearTimeout(this.#retry);
    clearInterval(this.#ageing);
    clearTimeout(this.#quiet);
    for (const { run } of this.#jails.splice(0)) run.close();
  }

  #fill(): void {
    if (this.#filling || this.#retry !== undefined || this.#closing.signal.aborted) return;
    this.#filling = true;
    this.#makeAll()
      .then((made) => {
        this.#filling = false;
        if (made) this.#retryMs = FIRST_RETRY_MS;
        else this.#fillLater();
      })
      .catch((error: unknown) => {
        this.#filling = false;
        if (this.#closing.signal.aborted) return;
        this.#options.onFailure(error);
        this.#fillLater();
      });
  }

  /** Fills the pool and replaces old jails; false when there is no zygote now. */
  async #makeAll(): Promise<boolean> {
    for (;;) {
      if (this.#jails.length >= this.#wanted && this.#isOlder(this.#options.maxAgeMs * OLD)) this.#drop();
      if (this.#jails.length >= this.#wanted) return true;
      const run = await openWarm(this.#options, this.#closing.signal);
      if (run === undefined) return false;
      this.#add(run);
    }
  }

  #add(run: JailRun): void {
    const jail = { run, since: performance.now() };
    this.#jails.push(jail);
    run.onGone(() => {
      const at = this.#jails.indexOf(jail);
      if (at === -1) return;
      this.#jails.splice(at, 1);
      this.#fillLater();
    });
  }

  #fillLater(): void {
    if (this.#fillAfter(this.#retryMs)) this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  #fillAfter(ms: number): boolean {
    if (this.#retry !== undefined || this.#closing.signal.aborted) return false;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#fill();
    }, ms).unref();
    return true;
  }

  /** Whether the jail that has waited longest has waited for `ms`. */
  #isOlder(ms: number): boolean {
    const oldest = this.#jails[0];
    return oldest !== undefined && performance.now() - oldest.since >= ms;
  }

  #drop(): void {
    this.#jails.shift()?.run.close();
  }
}

/** A jail that is ready to wait; undefined when none can be made now. */
async function openWarm(
  { socket, fill }: WarmPoolOptions,
  signal: AbortSignal,
): Promise<JailRun | undefined> {
  const run = await JailRun.open(socket, signal);
  try {
    if (await fill(run)) return run;
  } catch (error) {
    run.close();
    throw error;
  }
  run.close();
  return undefined;
}
