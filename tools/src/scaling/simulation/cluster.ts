/**
 * Simulates a cluster: requests arrive at the API, wait in the queue, run on a node, and are answered. A run whose node
 * fails is taken up once more when its lock has expired. A program that was paused on that node begins again from the top,
 * as in docs/operate.md. The same spec gives the same outcome. Pure.
 */
import { Admission } from "./admission.ts";
import { Clock, type Timer } from "./clock.ts";
import { Line } from "./line.ts";
import { Node } from "./node.ts";
import { Processor } from "./processor.ts";
import { exponential, streamOf } from "./random.ts";
import type { ClusterSpec, Outcome, Round, SimulatedKind } from "./spec.ts";
import { Station } from "./station.ts";
import { Tally } from "./tally.ts";

/** A job whose lock was not renewed for this long is stalled: another worker takes it up (docs/overview.md). */
const STALLED_MS = 5000;
const MAX_ATTEMPTS = 2;
/** Bounds memory: further requests are not simulated. */
const MAX_REQUESTS = 5_000_000;

interface Request {
  kind: SimulatedKind;
  principal: number;
  place: number;
  arrivedAt: number;
  attempts: number;
  /** The number of rounds that have ended. */
  rounds: number;
  /** The processor time of this program relative to the mean. */
  factor: number;
  /** The node where it is paused, and the generation of that node at the time. */
  home: { node: Node; generation: number } | undefined;
  giveUp: Timer | undefined;
}

export function simulate(spec: ClusterSpec): Outcome {
  return new Cluster(spec).run();
}

class Cluster {
  readonly #spec: ClusterSpec;
  readonly #clock = new Clock();
  readonly #nodes: readonly Node[];
  readonly #fronts: readonly Processor[];
  readonly #store: Pick<Station, "use" | "busyMs">;
  readonly #line = new Line<Request>();
  /** Rounds of paused programs: they go before new runs, each on its own node. */
  readonly #rounds = new Map<Node, Line<Request>>();
  readonly #admission: Admission;
  readonly #tally = new Tally();
  readonly #random: Record<"arrivals" | "kinds" | "principals" | "work", () => number>;
  readonly #shares: number;
  #issued = 0;
  #turn = 0;
  #isLooked = false;

  constructor(spec: ClusterSpec) {
    const { nodes, cores, slots, fronts, kinds, seed, seats, limit } = spec;
    this.#spec = spec;
    this.#nodes = Array.from({ length: nodes }, () => new Node(this.#clock, cores, slots));
    const first = (this.#nodes[0] as Node).processor;
    const own = Array.from({ length: fronts }, () => new Processor(this.#clock, cores));
    this.#fronts = fronts === 0 ? [first] : own;
    this.#store = fronts === 0 ? first : new Station(this.#clock, 1);
    this.#admission = new Admission(seats, limit);
    this.#shares = kinds.reduce((sum, { share }) => sum + share, 0);
    this.#random = {
      arrivals: streamOf(seed, 1),
      kinds: streamOf(seed, 2),
      principals: streamOf(seed, 3),
      work: streamOf(seed, 4),
    };
  }

  run(): Outcome {
    const { arrivals, failures = [] } = this.#spec;
    for (const { node, atMs, forMs } of failures) {
      const failing = this.#nodes[node] as Node;
      this.#clock.after(atMs, () => this.#fail(failing));
      this.#clock.after(atMs + forMs, () => {
        failing.comeBack();
        this.#dispatch();
      });
    }
    if (arrivals.type === "rate") this.#arriveUntil(arrivals.perSecond, arrivals.seconds * 1000);
    else for (let client = 0; client < arrivals.clients; client++) this.#next();
    this.#clock.run();
    const running = this.#nodes.reduce((sum, node) => sum + node.running + node.processor.jobs, 0);
    return this.#tally.outcome(running + this.#admission.inHand + this.#line.length);
  }

  #fail(node: Node): void {
    node.fail();
    const line = this.#rounds.get(node);
    for (let next = line?.pop(); next !== undefined; next = line?.pop()) this.#enqueue(next);
  }

  #arriveUntil(perSecond: number, endMs: number): void {
    const wait = (1000 / perSecond) * exponential(this.#random.arrivals);
    if (this.#clock.now + wait > endMs || this.#issued >= MAX_REQUESTS) {
      this.#clock.after(endMs - this.#clock.now, () => this.#look());
      return;
    }
    this.#clock.after(wait, () => {
      this.#arrive();
      this.#arriveUntil(perSecond, endMs);
    });
  }

  /** Sends the next request of a client that has its answer. */
  #next(): void {
    const { arrivals } = this.#spec;
    if (arrivals.type !== "clients") return;
    if (this.#issued < arrivals.requests) this.#arrive();
    else if (!this.#isLooked) this.#look();
  }

  #look(): void {
    this.#isLooked = true;
    this.#tally.look(this.#clock.now, {
      fronts: this.#fronts,
      nodes: this.#nodes,
      storeBusyMs: () => this.#store.busyMs,
      cores: this.#spec.cores,
    });
  }

  #arrive(): void {
    this.#issued++;
    this.#tally.count("arrived");
    const principal = this.#principal();
    const kind = this.#kind();
    const place = this.#admission.enter(principal);
    if (place === "seats" || place === "limit") {
      this.#tally.refused(place === "seats" ? "refusedBySeats" : "refusedByLimit", principal);
      return;
    }
    const factor = this.#spec.variation(this.#random.work);
    const arrivedAt = this.#clock.now;
    const fresh = { attempts: 1, rounds: 0, home: undefined, giveUp: undefined };
    this.#round({ kind, principal, place, arrivedAt, factor, ...fresh });
  }

  #principal(): number {
    const { principals, flood } = this.#spec;
    const draw = this.#random.principals();
    if (flood === undefined) return Math.floor(draw * principals);
    return draw < flood ? 0 : 1 + Math.floor(((draw - flood) / (1 - flood)) * (principals - 1));
  }

  #kind(): SimulatedKind {
    const { kinds } = this.#spec;
    let left = this.#random.kinds() * this.#shares;
    for (const kind of kinds) {
      left -= kind.share;
      if (left < 0) return kind;
    }
    return kinds.at(-1) as SimulatedKind;
  }

  /** Half of the work of the front and of Redis comes before the run, half after it. */
  #round(request: Request): void {
    this.#ask(request, () => {
      if (request.kind.first.node > 0) this.#enqueue(request);
      else this.#ask(request, () => this.#end(request, "answered"));
    });
  }

  #ask(request: Request, then: () => void): void {
    const { front, store } = this.#work(request);
    const machine = this.#fronts[this.#turn++ % this.#fronts.length] as Processor;
    machine.use(front / 2, () => this.#store.use(store / 2, then));
  }

  #work({ rounds, kind }: Request): Round {
    return rounds === 0 ? kind.first : kind.further;
  }

  #enqueue(request: Request): void {
    const { home, giveUp } = request;
    if (giveUp !== undefined) giveUp.isCancelled = true;
    if (home !== undefined && home.node.generation !== home.generation) request.home = undefined;
    this.#lineOf(request).push(request, request.place);
    request.giveUp = this.#clock.after(this.#spec.queueWaitMs, () => {
      if (this.#lineOf(request).giveUp(request)) this.#end(request, "gaveUp");
    });
    this.#dispatch();
    this.#tally.mostWaiting = Math.max(this.#tally.mostWaiting, this.#line.length);
  }

  #lineOf({ home }: Request): Line<Request> {
    if (home === undefined) return this.#line;
    const known = this.#rounds.get(home.node);
    if (known !== undefined) return known;
    const line = new Line<Request>();
    this.#rounds.set(home.node, line);
    return line;
  }

  /** Gives free slots to waiting requests, node by node in turn. */
  #dispatch(): void {
    for (const [node, line] of this.#rounds) this.#give(node, line);
    for (let tried = 0; tried < this.#nodes.length && this.#line.length > 0; tried++) {
      const node = this.#nodes[this.#turn++ % this.#nodes.length] as Node;
      if (!node.isFree) continue;
      this.#startOn(node, this.#line.pop() as Request);
      tried = -1;
    }
  }

  #give(node: Node, line: Line<Request>): void {
    while (node.isFree && line.length > 0) this.#startOn(node, line.pop() as Request);
  }

  #startOn(node: Node, request: Request): void {
    if (request.giveUp !== undefined) request.giveUp.isCancelled = true;
    const { kind, factor, rounds, home } = request;
    // Without its paused process a program is replayed from the top with its recorded results.
    const again = home === undefined ? kind.first.node + rounds * kind.further.node : kind.further.node;
    const isNew = home === undefined;
    request.home = { node, generation: node.generation };
    node.start({
      pool: isNew && kind.pool !== undefined ? { name: kind.name, spec: kind.pool } : undefined,
      processorMs: again * factor,
      waitMs: isNew ? kind.waitMs : 0,
      done: () => {
        this.#ask(request, () => this.#answer(request));
        this.#dispatch();
      },
      lost: () => this.#clock.after(STALLED_MS, () => this.#repeat(request)),
    });
  }

  #answer(request: Request): void {
    const { kind } = request;
    if (request.rounds === kind.calls) {
      this.#end(request, "answered");
      return;
    }
    request.rounds++;
    this.#clock.after(kind.pauseMs, () => this.#round(request));
  }

  #repeat(request: Request): void {
    if (++request.attempts > MAX_ATTEMPTS) {
      this.#end(request, "failed");
      return;
    }
    this.#tally.count("repeated");
    this.#enqueue(request);
  }

  #end(request: Request, how: "answered" | "gaveUp" | "failed"): void {
    const { principal, arrivedAt, kind } = request;
    this.#admission.leave(principal);
    if (how === "answered") {
      const paused = kind.calls * kind.pauseMs;
      this.#tally.answered({ at: this.#clock.now, ms: this.#clock.now - arrivedAt - paused, principal });
    } else this.#tally.count(how);
    this.#next();
  }
}
