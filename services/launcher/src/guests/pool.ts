/**
 * The guests: some are started ahead, each run gets one, and no guest serves two principals. As many exist at once as
 * `most`, those that boot, that are paused and whose end is under way included. A guest whose run did not end well is ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@svc/contracts";
import type { Log } from "@svc/service-kit";

/** What a pool asks of a guest; ./guest.ts is one. */
export interface Pooled {
  /** Resolves when it takes runs; rejects when it is not there in time. */
  ready(): Promise<void>;
  /** Why it is gone. Never rejects. */
  readonly ended: Promise<string>;
  /** It computes nothing until `resume`. */
  pause(): void;
  resume(): void;
  /** Resolves when its memory is free. */
  end(): Promise<void>;
}

export const GUEST_STATES = ["booting", "ready", "busy", "paused", "ending"] as const;
export type GuestState = (typeof GUEST_STATES)[number];

/**
 * Why a guest was ended: its runs are over, its age, it did not get ready, it went by itself, a run on it failed or was cancelled, it
 * made room (or its paused program was given up), the launcher ends.
 */
export const END_CAUSES = ["served", "age", "boot", "lost", "failed", "evicted", "shutdown"] as const;
export type EndCause = (typeof END_CAUSES)[number];

export interface PoolOptions<G extends Pooled> {
  boot: () => Promise<G>;
  most: number;
  /** So many are kept ready. */
  ahead: number;
  /** So many boot at once. */
  booting: number;
  runsPerGuest: number;
  maxAgeMs: number;
  /** After so long without a run another one takes its place, once no other guest comes or goes. */
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

/** A program that was just paused may still be telling of its calls. */
export const PAUSE_REST_MS = 10_000;

/** The principal of a run that nobody has signed (services/runner/src/admission/manifest.ts): its guest serves no other. */
const UNKNOWN = "";

/** Until it is looked whether the next unused guest can go. */
const UNUSED_PAUSE_MS = 200;

/** Between attempts to boot, after one has failed. */
const BOOT_PAUSE_MS = 1000;

/** A guest while one program has it. `over` and `fail` are the end, and may be called once. */
export interface Lease<G> {
  guest: G;
  /** Its program waits. */
  pause: () => void;
  goOn: () => void;
  /** The guest may serve its principal again. */
  over: () => void;
  fail: (cause: EndCause) => void;
}

export class Pool<G extends Pooled> {
  readonly #options: PoolOptions<G>;
  readonly #members = new Set<Member<G>>();
  readonly #waiting: Waiter<G>[] = [];
  /** Boots whose guest is not there yet. */
  #beginning = 0;
  #failures = 0;
  #isClosed = false;
  readonly #hasBeenReady = Promise.withResolvers<void>();

  constructor(options: PoolOptions<G>) {
    this.#options = options;
  }

  /** Resolves when the first guest is ready: one is booted also where none is kept ahead, to see that it works. */
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

  /** Why no guest gets ready; undefined: nothing is known to be wrong. */
  get problem(): string | undefined {
    const { ready, busy, paused } = this.counts;
    if (this.#failures === 0 || ready + busy + paused > 0) return undefined;
    return "no microVM gets ready; the launcher's log says why";
  }

  /** A guest that has served nobody, or only this principal. `runner_busy`: none was free in time. */
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
    return {
      guest: member.guest,
      pause: () => this.#change(member, "paused"),
      goOn: () => this.#change(member, "busy"),
      over: () => {
        const { runsPerGuest } = this.#options;
        if (member.isOld) this.#end(member, "age");
        else if (member.runs >= runsPerGuest || member.principal === UNKNOWN) this.#end(member, "served");
        else this.#change(member, "ready");
        this.#assign();
      },
      fail: (cause) => this.#end(member, cause),
    };
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

  /** It takes no processor until it has something to do. */
  #rest(member: Member<G>): void {
    if (member.isAtRest || member.state === "ending") return;
    member.isAtRest = true;
    member.guest.pause();
  }

  /** One that knows the principal first. */
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

  /** Gives ready guests to those who wait, first come, first served. */
  #assign(): void {
    for (const waiter of [...this.#waiting]) {
      const member = this.#find(waiter.principal);
      if (member === undefined) continue;
      // Taken before the waiter's turn of the event loop comes.
      this.#change(member, "busy");
      waiter.give(member);
    }
    this.#fill();
  }

  /** Boots what is missing. One that waits for a principal's next run makes room for those who wait now. */
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
      if (member !== undefined) this.#end(member, "boot");
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

  /** Boots one, whose failure or success decides about more; another one's success has decided already. */
  #retry(): void {
    if (this.#failures === 0) this.#fill();
    else if (!this.#isClosed && this.counts.booting === 0) void this.#boot();
  }

  #grewOld(member: Member<G>): void {
    member.isOld = true;
    if (member.state === "ready") this.#end(member, "age");
  }

  /** One after the other: while one is replaced, the rest are there for runs. */
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
    // A timer would hold what its guest holds, for an hour.
    for (const timer of [member.untilRest, member.untilOld, member.untilUnused]) clearTimeout(timer);
    // Its boot has failed, which is looked at there.
    if (state !== "booting") this.#fill();
  }

  /** Resolves when no guest is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const members = [...this.#members];
    for (const member of members) this.#end(member, "shutdown");
    await Promise.all(members.map(({ guest }) => guest.ended));
  }
}

/** Rejects, too, when the guest ends before. */
async function readyOrGone(guest: Pooled): Promise<void> {
  const gone = guest.ended.then((reason) => {
    throw new Error(reason);
  });
  await Promise.race([guest.ready(), gone]);
}

const busy = () => new ServiceError("runner_busy", undefined, { headers: { "retry-after": "1" } });
