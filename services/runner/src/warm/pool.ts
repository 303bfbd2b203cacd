/**
 * Jails of one kind that wait for one job each, with a process that has started already. They are made one after another, outside
 * the path of requests. Those that have waited for nearly as long as they may are replaced, one after the other, so that the rest
 * waits on; one that is older is given to nobody. Failures are retried with growing pauses. The pool grows within its bound when
 * requests empty it, and shrinks to `least` after a quiet minute.
 */
import { JailRun } from "@svc/jail-client";

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;
const QUIET_MS = 60_000;
/** Of the age that one may have: from then on it is replaced, as soon as that is looked at, which is so often. */
const OLD = 0.9;
const LOOK = 0.1;

export interface WarmPoolOptions {
  socket: string;
  /** Makes a jail one of this kind; false when that cannot be now. */
  fill: (jail: JailRun) => Promise<boolean>;
  least: number;
  mayGrow: () => boolean;
  /** Time between a request that takes one and the making of the next. */
  refillMs: number;
  /** How long one may wait. */
  maxAgeMs: number;
  /** How long without a request is quiet. */
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

  /** Begins to fill, and keeps full what is taken from. */
  start(): void {
    this.#ageing = setInterval(() => this.#fill(), this.#options.maxAgeMs * LOOK).unref();
    this.#fill();
  }

  /** The one that has waited longest; it is the caller's from here on. */
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
  giveWay(): boolean {
    if (this.#jails.length === 0) return false;
    this.#drop();
    this.#fillLater();
    return true;
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

  /** Fills, and replaces those that are old; false when there is no zygote now. */
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

  /** Whether the one that has waited longest has waited for so long. */
  #isOlder(ms: number): boolean {
    const oldest = this.#jails[0];
    return oldest !== undefined && performance.now() - oldest.since >= ms;
  }

  #drop(): void {
    this.#jails.shift()?.run.close();
  }
}

/** A jail that waits; undefined when there can be none now. */
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
