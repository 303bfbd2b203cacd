/**
 * Jails of one zygote that wait for their one job, each with a process that has started already. Kept at a number, made
 * one after another, off the way of requests; those that have waited too long are replaced, so that none outlives its
 * zygote for long. What cannot be made is tried again, ever more rarely.
 */
import { JailRun } from "@svc/jail-client";

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;

export interface WarmPoolOptions {
  socket: string;
  zygote: string;
  size: number;
  /** How long one may wait. */
  maxAgeMs: number;
  onFailure: (error: unknown) => void;
}

interface Parked {
  run: JailRun;
  since: number;
}

export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #parked: Parked[] = [];
  readonly #closing = new AbortController();
  #filling = false;
  #retryMs = FIRST_RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #ageing: NodeJS.Timeout | undefined;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#parked.length;
  }

  /** Begins to fill, and keeps full what is taken from. */
  start(): void {
    if (this.#options.size === 0) return;
    this.#ageing = setInterval(() => this.#dropOld(), Math.max(this.#options.maxAgeMs / 10, 100)).unref();
    this.#fill();
  }

  /** The one that has waited longest; it is the caller's from here on. */
  take(): JailRun | undefined {
    const parked = this.#parked.shift();
    this.#fill();
    return parked?.run;
  }

  /** Gives one jail up, for a request that finds none. */
  giveWay(): boolean {
    const parked = this.#parked.shift();
    parked?.run.close();
    if (parked !== undefined) this.#fillLater();
    return parked !== undefined;
  }

  close(): void {
    this.#closing.abort(new Error("the runner stops"));
    clearTimeout(this.#retry);
    clearInterval(this.#ageing);
    for (const { run } of this.#parked.splice(0)) run.close();
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

  /** False when there is no zygote now. */
  async #makeAll(): Promise<boolean> {
    while (this.#parked.length < this.#options.size) {
      const run = await openWarm(this.#options.socket, this.#options.zygote, this.#closing.signal);
      if (run === undefined) return false;
      this.#park(run);
    }
    return true;
  }

  #park(run: JailRun): void {
    const parked = { run, since: performance.now() };
    this.#parked.push(parked);
    run.onGone(() => {
      const at = this.#parked.indexOf(parked);
      if (at === -1) return;
      this.#parked.splice(at, 1);
      this.#fillLater();
    });
  }

  #fillLater(): void {
    if (this.#retry !== undefined || this.#closing.signal.aborted) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#fill();
    }, this.#retryMs).unref();
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  #dropOld(): void {
    const oldest = this.#parked[0];
    if (oldest === undefined || performance.now() - oldest.since < this.#options.maxAgeMs) return;
    this.#parked.shift();
    oldest.run.close();
    this.#fill();
  }
}

/** A jail with a process of the zygote; undefined when there is no such zygote now. */
async function openWarm(socket: string, zygote: string, signal: AbortSignal): Promise<JailRun | undefined> {
  const run = await JailRun.open(socket, signal);
  try {
    if (await run.warm(zygote)) return run;
  } catch (error) {
    run.close();
    throw error;
  }
  run.close();
  return undefined;
}
