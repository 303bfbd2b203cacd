/**
 * The pool of guests. Some are booted ahead, each run gets one, and no guest serves two principals. At most `most` guests exist at once,
 * including those that boot, are paused or are ending. A guest whose run did not end well is ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@svc/contracts";
import type { Log } from "@svc/service-kit";

/** The pool's view of a guest; ./guest.ts implements it. */
export interface Pooled {
  /** Resolves when the guest accepts runs; rejects when it is not ready in time. */
  ready(): Promise<void>;
  /** Resolves with the reason when the guest is gone. Never rejects. */
  readonly ended: Promise<string>;
  /** Stops the guest's processors until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends the guest. Resolves when its memory is free. */
  end(): Promise<void>;
}

export const GUEST_STATES = ["booting", "ready", "busy", "paused", "ending"] as const;
export type GuestState = (typeof GUEST_STATES)[number];

/**
 * Why a guest ended. `served`: its runs are over. `age`: it was too old. `boot`: it did not become ready. `lost`: it ended by itself. `failed`: a
 * run on it failed or was cancelled. `evicted`: it made room, or its paused program was given up. `shutdown`: the launcher stops.
 */
export const END_CAUSES = ["served", "age", "boot", "lost", "failed", "evicted", "shutdown"] as const;
export type EndCause = (typeof END_CAUSES)[number];

export interface PoolOptions<G extends Pooled> {
  boot: () => Promise<G>;
  most: number;
  /** How many guests are kept ready. */
  ahead: number;
  /** How many guests boot at once. */
  booting: number;
  runsPerGuest: number;
  maxAgeMs: number;
  /** A guest that has had no run for this long is replaced, once no other guest boots or ends. */
  maxUnusedMs: number;
  /** Longest wait of a run for its guest. */
  waitMs: number;
  onReady: (bootMs: number) => void;
  onEnd: (cause: EndCause) => void;
  log: Log;
}

interface Member<G> {
  guest: G;
  state: GuestState;
  /** Undefined: it has served nobody yet. */
  principal: string | undefined;
  runs: number;
  isOld: boolean;
  isAtRest: boolean;
  untilRest?: NodeJS.Timeout;
  untilOld?: NodeJS.Timeout;
  untilUnused?: NodeJS.Timeout;
}

interface Waiter<G> {
  principal: string;
  give: (member: Member<G>) => void;
}

/** Time for which a guest still runs after its program was paused: its runner may still be recording the program's calls. */
export const PAUSE_REST_MS = 10_000;

/** Principal of a run that nobody has signed (services/runner/src/admission/manifest.ts). Its guest serves no other run. */
const UNKNOWN = "";

/** Pause before the next check whether an unused guest can be replaced. */
const UNUSED_PAUSE_MS = 200;

/** Pause between attempts to boot after a failed one. */
const BOOT_PAUSE_MS = 1000;

/** A lease of a guest for one program. The first call of `over` or `fail` ends the lease; later ones change nothing. */
export interface Lease<G> {
  guest: G;
  /** The program is paused. */
  pause: () => void;
  goOn: () => void;
  /** The run ended well: the guest may serve its principal again. */
  over: () => void;
  fail: (cause: EndCause) => void;
}

export class Pool<G extends Pooled> {
  readonly #options: PoolOptions<G>;
  readonly #members = new Set<Member<G>>();
  readonly #waiting: Waiter<G>[] = [];
  /** Boots that have not returned their guest yet. */
  #beginning = 0;
  #failures = 0;
  #isClosed = false;
  readonly #hasBeenReady = Promise.withResolvers<void>();

  constructor(options: PoolOptions<G>) {
    this.#options = options;
  }

  /** Resolves when the first guest is ready. To show that guests boot at all, one is booted even if none is kept ahead. */
  start(): Promise<void> {
    this.#fill();
    if (this.counts.booting === 0) void this.#boot();
    return this.#hasBeenReady.promise;
  }

  get counts(): Record<GuestState, number> {
    const counts = { booting: this.#beginning, ready: 0, busy: 0, paused: 0, ending: 0 };
    for (const { state } of this.#members) counts[state] += 1;
    return counts;
  }

  /** Why no guest becomes ready; undefined: no problem is known. */
  get problem(): string | undefined {
    const { ready, busy, paused } = this.counts;
    if (this.#failures === 0 || ready + busy + paused > 0) return undefined;
    return "no microVM gets ready; the launcher's log says why";
  }

  /** Leases a guest that has served nobody, or only this principal. Throws `runner_busy` when none is free in time. */
  async take(principal: string, signal: AbortSignal): Promise<Lease<G>> {
    signal.throwIfAborted();
    const member = this.#find(principal) ?? (await this.#wait(principal, signal));
    this.#change(member, "busy");
    member.principal = principal;
    member.runs += 1;
    this.#fill();
    return this.#lease(member);
  }

  #lease(member: Member<G>): Lease<G> {
    let isOver = false;
    // The guest may have another lease by then.
    const once = (end: () => void) => {
      if (!isOver) end();
      isOver = true;
    };
    return {
      guest: member.guest,
      pause: () => this.#change(member, "paused"),
      goOn: () => this.#change(member, "busy"),
      over: () => once(() => this.#giveBack(member)),
      fail: (cause) => once(() => this.#end(member, cause)),
    };
  }

  #giveBack(member: Member<G>): void {
    if (member.isOld) this.#end(member, "age");
    else if (member.runs >= this.#options.runsPerGuest || member.principal === UNKNOWN)
      this.#end(member, "served");
    else this.#change(member, "ready");
    this.#assign();
  }

  #change(member: Member<G>, state: GuestState): void {
    if (member.state === "ending") return;
    member.state = state;
    clearTimeout(member.untilRest);
    if (state === "ready") this.#rest(member);
    else if (state === "paused")
      member.untilRest = setTimeout(() => this.#rest(member), PAUSE_REST_MS).unref();
    else if (member.isAtRest) {
      member.isAtRest = false;
      member.guest.resume();
    }
  }

  /** Stops a guest, so that it takes no processor until it has something to do. */
  #rest(member: Member<G>): void {
    if (member.isAtRest || member.state === "ending") return;
    member.isAtRest = true;
    member.guest.pause();
  }

  /** Prefers a ready guest that has served this principal to a fresh one. */
  #find(principal: string): Member<G> | undefined {
    const ready = [...this.#members].filter(({ state }) => state === "ready");
    return (
      ready.find((member) => member.principal === principal) ??
      ready.find((member) => member.principal === undefined)
    );
  }

  #wait(principal: string, signal: AbortSignal): Promise<Member<G>> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        const index = this.#waiting.indexOf(waiter);
        if (index >= 0) this.#waiting.splice(index, 1);
      };
      const leave = (error: unknown) => {
        settle();
        reject(error);
      };
      const waiter: Waiter<G> = {
        principal,
        give: (member) => {
          settle();
          resolve(member);
        },
      };
      const timer = setTimeout(() => leave(busy()), this.#options.waitMs);
      const onAbort = () => leave(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(waiter);
      this.#fill();
    });
  }

  /** Gives ready guests to the waiting runs, first come, first served. */
  #assign(): void {
    for (const waiter of [...this.#waiting]) {
      const member = this.#find(waiter.principal);
      if (member === undefined) continue;
      // Marks the guest as taken now, because the waiter continues only later.
      this.#change(member, "busy");
      waiter.give(member);
    }
    this.#fill();
  }

  /** Boots missing guests. At the limit, a guest that is kept for its principal's next run is evicted for a run that waits now. */
  #fill(): void {
    const { most, ahead, booting: bootsAtOnce } = this.#options;
    for (;;) {
      const { booting, ending } = this.counts;
      const fresh = [...this.#members].filter(
        (one) => one.state === "ready" && one.principal === undefined,
      ).length;
      const wanted = ahead + this.#waiting.length - fresh - booting;
      if (this.#isClosed || wanted <= 0 || booting >= bootsAtOnce || this.#failures > 0) return;
      if (this.#members.size + this.#beginning < most) {
        void this.#boot();
        continue;
      }
      const idle = [...this.#members].find((one) => one.state === "ready" && one.principal !== undefined);
      if (idle === undefined || this.#waiting.length <= booting + ending) return;
      this.#end(idle, "evicted");
    }
  }

  async #boot(): Promise<void> {
    const began = performance.now();
    let member: Member<G> | undefined;
    try {
      member = await this.#begin();
      await readyOrGone(member.guest);
      if (member.state !== "booting") throw new Error("it ended when it was ready");
      this.#failures = 0;
      this.#options.onReady(performance.now() - began);
      this.#isReady(member);
    } catch (err) {
      if (this.#isClosed) return;
      this.#failures += 1;
      this.#options.log.error({ err }, "a microVM did not get ready");
      if (member === undefined) this.#options.onEnd("boot");
      else this.#end(member, "boot");
      await sleep(BOOT_PAUSE_MS, undefined, { ref: false });
      this.#retry();
    }
  }

  async #begin(): Promise<Member<G>> {
    this.#beginning += 1;
    try {
      const guest = await this.#options.boot();
      const member: Member<G> = {
        guest,
        state: "booting",
        principal: undefined,
        runs: 0,
        isOld: false,
        isAtRest: false,
      };
      this.#members.add(member);
      void guest.ended.then((reason) => this.#gone(member, reason));
      if (this.#isClosed) this.#end(member, "shutdown");
      return member;
    } finally {
      this.#beginning -= 1;
    }
  }

  #isReady(member: Member<G>): void {
    this.#change(member, "ready");
    member.untilOld = setTimeout(() => this.#grewOld(member), this.#options.maxAgeMs).unref();
    member.untilUnused = setTimeout(() => this.#stayedUnused(member), this.#options.maxUnusedMs).unref();
    this.#hasBeenReady.resolve();
    this.#assign();
  }

  /**
   * Retries after a failed boot. While boots fail, it boots a single guest, whose outcome decides about more. If another boot has succeeded, it
   * fills the pool.
   */
  #retry(): void {
    if (this.#failures === 0) this.#fill();
    else if (!this.#isClosed && this.counts.booting === 0) void this.#boot();
  }

  #grewOld(member: Member<G>): void {
    member.isOld = true;
    if (member.state === "ready") this.#end(member, "age");
  }

  /** Replaces unused guests one at a time, so that the others stay ready for runs. */
  #stayedUnused(member: Member<G>): void {
    if (member.state !== "ready" || member.principal !== undefined) return;
    const { booting, ending } = this.counts;
    if (booting + ending === 0) this.#end(member, "age");
    else member.untilUnused = setTimeout(() => this.#stayedUnused(member), UNUSED_PAUSE_MS).unref();
  }

  #end(member: Member<G>, cause: EndCause): void {
    if (member.state === "ending" || !this.#members.has(member)) return;
    member.state = "ending";
    this.#options.onEnd(cause);
    void member.guest.end();
  }

  #gone(member: Member<G>, reason: string): void {
    const { state } = member;
    if (state !== "ending") {
      this.#options.log.error({ reason, state }, "a microVM has ended by itself");
      this.#options.onEnd(state === "booting" ? "boot" : "lost");
    }
    this.#members.delete(member);
    member.state = "ending";
    // A pending timer would keep the guest's resources for an hour.
    for (const timer of [member.untilRest, member.untilOld, member.untilUnused]) clearTimeout(timer);
    // A guest that ends while it boots is handled in #boot.
    if (state !== "booting") this.#fill();
  }

  /** Ends all guests. Resolves when none is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const members = [...this.#members];
    for (const member of members) this.#end(member, "shutdown");
    await Promise.all(members.map(({ guest }) => guest.ended));
  }
}

/** Also rejects when the guest ends first. */
async function readyOrGone(guest: Pooled): Promise<void> {
  const gone = guest.ended.then((reason) => {
    throw new Error(reason);
  });
  await Promise.race([guest.ready(), gone]);
}

const busy = () => new ServiceError("runner_busy", undefined, { headers: { "retry-after": "1" } });
