/**
 * The runners that a worker knows, and which of them gets the next run: among ready runners, the one with the smallest share of its slots
 * in use by this worker. A runner that failed or had no slot is left out for a pause that doubles with each consecutive failure, and
 * comes back when a probe finds it ready. If none is ready, a busy runner is chosen before one that is away: a pool of one is always
 * asked. Pure: the caller passes the clock, in milliseconds.
 */

export type RunnerState = "ready" | "busy" | "away";

/** `served`: it made a run. `ready`: it answered anything else. `failed`: it refused, or says that it is not ready. `silent`: nothing came back. */
export type Outcome = "served" | "ready" | "busy" | "failed" | "silent";

const PAUSE_MS = { first: 250, busy: 2000, away: 15_000 } as const;
/** The runs of a runner that gives no answer for this long are given up. */
const CUT_OFF_MS = 15_000;
/** Assumed until a runner reports its number of slots. */
const ASSUMED_SLOTS = 8;
const MAX_SLOTS = 512;

interface Member {
  address: string;
  state: RunnerState;
  slots: number;
  inFlight: number;
  /** Consecutive failures since its last run. */
  failures: number;
  probeAt: number;
  silentSince: number | undefined;
  /** Sequence number of its latest choice. */
  chosenAt: number;
}

export class RunnerPool {
  /** Time between probes of a ready runner; undefined: ready runners are not probed. */
  readonly #probeEveryMs: number | undefined;
  readonly #members = new Map<string, Member>();
  #choices = 0;

  constructor(probeEveryMs: number | undefined) {
    this.#probeEveryMs = probeEveryMs;
  }

  /** Adds new runners and removes those that are gone. */
  setMembers(addresses: Iterable<string>, nowMs: number): void {
    const wanted = new Set(addresses);
    for (const address of this.#members.keys()) if (!wanted.has(address)) this.#members.delete(address);
    for (const address of wanted) {
      if (this.#members.has(address)) continue;
      this.#members.set(address, {
        address,
        state: "ready",
        slots: ASSUMED_SLOTS,
        inFlight: 0,
        failures: 0,
        probeAt: this.#probeEveryMs === undefined ? Number.POSITIVE_INFINITY : nowMs,
        silentSince: undefined,
        chosenAt: 0,
      });
    }
  }

  has(address: string): boolean {
    return this.#members.has(address);
  }

  get size(): number {
    return this.#members.size;
  }

  /** Undefined: every runner was tried. */
  choose(tried: ReadonlySet<string>): string | undefined {
    let best: Member | undefined;
    for (const member of this.#members.values()) {
      if (!tried.has(member.address) && (best === undefined || isBetter(member, best))) best = member;
    }
    if (best !== undefined) best.chosenAt = ++this.#choices;
    return best?.address;
  }

  began(address: string): void {
    const member = this.#members.get(address);
    if (member !== undefined) member.inFlight++;
  }

  /** A runner that was removed in the meantime has no count. */
  ended(address: string): void {
    const member = this.#members.get(address);
    if (member !== undefined && member.inFlight > 0) member.inFlight--;
  }

  /** `slots`: the number that the runner reports. Returns the new state, if it changed. */
  report(address: string, outcome: Outcome, nowMs: number, slots?: number): RunnerState | undefined {
    const member = this.#members.get(address);
    if (member === undefined) return undefined;
    const before = member.state;
    if (slots !== undefined && slots >= 1) member.slots = Math.min(slots, MAX_SLOTS);
    member.silentSince = outcome === "silent" ? (member.silentSince ?? nowMs) : undefined;
    if (outcome === "served" || outcome === "ready") {
      // Only a run resets the failures: a runner that just answers is left out for longer and longer.
      if (outcome === "served") member.failures = 0;
      member.state = "ready";
      member.probeAt = nowMs + (this.#probeEveryMs ?? Number.POSITIVE_INFINITY);
    } else {
      member.state = outcome === "busy" ? "busy" : "away";
      member.probeAt = nowMs + Math.min(PAUSE_MS.first * 2 ** member.failures++, PAUSE_MS[member.state]);
    }
    return member.state === before ? undefined : member.state;
  }

  /** Makes a probe of the runner due at once. */
  doubt(address: string, nowMs: number): void {
    const member = this.#members.get(address);
    if (member !== undefined) member.probeAt = Math.min(member.probeAt, nowMs);
  }

  /** Takes the runners to probe now. The report of its probe makes a runner due again. */
  takeDue(nowMs: number): string[] {
    const due = [...this.#members.values()].filter(({ probeAt }) => probeAt <= nowMs);
    for (const member of due) member.probeAt = Number.POSITIVE_INFINITY;
    return due.map(({ address }) => address);
  }

  /** Takes the runners that gave no answer for too long. Each is returned again after the same time. */
  takeCutOff(nowMs: number): string[] {
    const isCutOff = ({ silentSince = nowMs }: Member) => nowMs - silentSince >= CUT_OFF_MS;
    const cutOff = [...this.#members.values()].filter(isCutOff);
    for (const member of cutOff) member.silentSince = nowMs;
    return cutOff.map(({ address }) => address);
  }

  counts(): Record<RunnerState, number> {
    const counts = { ready: 0, busy: 0, away: 0 };
    for (const { state } of this.#members.values()) counts[state]++;
    return counts;
  }
}

const RANK: Record<RunnerState, number> = { ready: 0, busy: 1, away: 2 };

/** A busy runner queues new runs; one that is away may refuse them. */
function isBetter(a: Member, b: Member): boolean {
  if (a.state !== b.state) return RANK[a.state] < RANK[b.state];
  if (a.state === "away" && a.failures !== b.failures) return a.failures < b.failures;
  const [shareA, shareB] = [a, b].map(({ inFlight, slots }) => (inFlight + 1) / slots) as [number, number];
  return shareA === shareB ? a.chosenAt < b.chosenAt : shareA < shareB;
}
