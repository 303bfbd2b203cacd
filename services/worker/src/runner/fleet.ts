/**
 * The runners of a worker. Sends a run to the best runner, and to the next one only when the run was certainly not accepted. Finds
 * runners in DNS if that is configured, probes runners that are left out, and aborts calls to unreachable ones. A single fixed runner is
 * different: it is never probed while it answers, and its calls are never aborted.
 */
import { Resolver } from "node:dns/promises";
import { ServiceError } from "@svc/contracts";
import {
  askPeer,
  type Config,
  errorText,
  type InnerClient,
  type Log,
  peerReason,
  type TlsIdentity,
} from "@svc/service-kit";
import { Connection } from "./connection.ts";
import { type DnsResolver, discoverRunners, type FoundRunner } from "./discovery.ts";
import { isNeverAccepted, NOT_BEGUN, outcomeOf } from "./outcome.ts";
import { type Outcome, RunnerPool, type RunnerState } from "./pool.ts";
import { probeRunner } from "./probe.ts";

const TICK_MS = 100;
const PROBE_EVERY_MS = 5000;
/** With several runners, one that cannot be reached must not delay a run for long. */
const CONNECT_MS = 2000;
const DISCOVER_MS = 5000;
/** A runner that DNS no longer names may hold paused programs. */
const KEPT_MS = 60_000;
const DNS = { timeout: 2000, tries: 2 };

/** What the healthy runners do now. */
export interface FleetLoad {
  /** No runner has a free slot. */
  isFull: boolean;
  /** Languages of the programs that run within their time limit. */
  languages: string[];
}

type Send<T> = (client: InnerClient, signal: AbortSignal, address: string) => Promise<T>;

export interface FleetOptions {
  log: Log;
  resolver?: DnsResolver;
  tls?: TlsIdentity | undefined;
}

export class RunnerFleet {
  /** Each address is exactly one runner. A paused program is then at this address, whatever its runner advertises. */
  readonly isDirect: boolean;
  readonly #endpoints: readonly string[];
  readonly #pool: RunnerPool;
  readonly #connections = new Map<string, Connection>();
  readonly #log: Log;
  readonly #tls: TlsIdentity | undefined;
  readonly #resolver: DnsResolver;
  readonly #discovery: Config["SVC_RUNNER_DISCOVERY"];
  readonly #ticks: NodeJS.Timeout;
  #discovers: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(config: Config, { log, tls, resolver = new Resolver(DNS) }: FleetOptions) {
    this.#log = log;
    this.#tls = tls;
    this.#resolver = resolver;
    this.#discovery = config.SVC_RUNNER_DISCOVERY;
    this.#endpoints = [...new Set(config.SANDBOX_ENDPOINT.map(rootOf))];
    this.isDirect = this.#discovery !== "off" || this.#endpoints.length > 1;
    this.#pool = new RunnerPool(this.isDirect ? PROBE_EVERY_MS : undefined);
    for (const address of config.SANDBOX_RUNNER_URLS.map(rootOf)) this.#connect({ address });
    if (this.#discovery === "off") this.#know(this.#endpoints.map((address) => ({ address })));
    else this.#discover(this.#discovery);
    this.#ticks = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  isKnown(address: string): boolean {
    return this.#connections.has(rootOf(address));
  }

  counts(): Record<RunnerState, number> {
    return this.#pool.counts();
  }

  /** Sends a run to any runner, and to another one only while none has accepted it. */
  async run<T>(signal: AbortSignal, send: Send<T>): Promise<T> {
    return this.#any("run", signal, send);
  }

  async #any<T>(kind: "run" | "question", signal: AbortSignal, send: Send<T>): Promise<T> {
    const tried = new Set<string>();
    let refusal: ServiceError | undefined;
    for (;;) {
      const address = this.#pool.choose(tried);
      // DNS names no runner yet: the run waits, as for a runner that starts.
      if (address === undefined)
        throw refusal ?? new ServiceError("starting_up", undefined, { cause: "no runner is known" });
      tried.add(address);
      try {
        return await this.#call(address, kind, signal, send);
      } catch (error) {
        if (signal.aborted || !isNeverAccepted(error)) throw error;
        // `runner_busy` counts most, because a slot is worth waiting for; then the answer of a runner, before a failed connection.
        if (error.code === "runner_busy" || refusal === undefined || !NOT_BEGUN.has(refusal.code))
          refusal = error;
      }
    }
  }

  /** Sends a call to the runner that holds a program. A program at an unknown address is lost. */
  async held<T>(address: string, signal: AbortSignal, send: Send<T>): Promise<T> {
    return this.#call(rootOf(address), "held", signal, send);
  }

  async #call<T>(
    address: string,
    kind: "run" | "held" | "question",
    signal: AbortSignal,
    send: Send<T>,
  ): Promise<T> {
    const connection = this.#connections.get(address);
    if (connection === undefined) throw new ServiceError("execution_not_found");
    this.#pool.began(address);
    try {
      const bound = kind === "held" ? "held" : "run";
      const answer = await connection.call(bound, signal, (client, own) => send(client, own, address));
      this.#report(address, kind === "run" ? "served" : "ready");
      return answer;
    } catch (error) {
      const outcome = signal.aborted ? "doubt" : outcomeOf(error);
      if (outcome !== "doubt") this.#report(address, outcome);
      else if (!signal.aborted) this.#pool.doubt(address, performance.now());
      throw error;
    } finally {
      this.#pool.ended(address);
    }
  }

  /** Sends a call that is not a run to any runner. */
  async ask<T>(send: (client: InnerClient) => Promise<T>): Promise<T> {
    return this.#any("question", new AbortController().signal, send);
  }

  /** Why no run is possible; undefined: one is possible. */
  async notReady(): Promise<string | undefined> {
    const [only] = this.#endpoints;
    if (!this.isDirect && only !== undefined) {
      const client = (this.#connections.get(only) as Connection).probed;
      return peerReason("the runner", await askPeer(client, "/api/v2/health"));
    }
    const { ready, busy, away } = this.counts();
    if (ready + busy > 0) return undefined;
    return away === 0 ? "no runner is found in DNS" : `none of ${away} runners is ready`;
  }

  /** Probes all runners. */
  async load(): Promise<FleetLoad> {
    const runners = [...this.#connections.values()];
    const probed = await Promise.all(runners.map(({ probed: client }) => probeRunner(client)));
    const languages = probed.flatMap(({ running = {} }) => Object.keys(running));
    return { isFull: probed.every(({ outcome }) => outcome !== "ready"), languages };
  }

  #report(address: string, outcome: Outcome, slots?: number): void {
    const state = this.#pool.report(address, outcome, performance.now(), slots);
    if (state === "away") this.#log.warn({ runner: address, outcome }, "runner left out");
    else if (state !== undefined) this.#log.info({ runner: address, state }, "runner changed state");
  }

  #tick(): void {
    const now = performance.now();
    for (const address of this.#pool.takeDue(now)) void this.#probe(address);
    if (!this.isDirect) return;
    for (const address of this.#pool.takeCutOff(now)) {
      const connection = this.#connections.get(address);
      if (connection === undefined || connection.isIdle) continue;
      this.#log.warn({ runner: address }, "runner unreachable, its runs are given up");
      connection.cutOff();
    }
  }

  async #probe(address: string): Promise<void> {
    const connection = this.#connections.get(address);
    if (connection === undefined) return;
    const { outcome, slots } = await probeRunner(connection.probed);
    if (!this.#isClosed) this.#report(address, outcome, slots);
  }

  #discover(how: "dns" | "srv"): void {
    discoverRunners(this.#endpoints, how, this.#resolver)
      .then((found) => {
        if (!this.#isClosed) this.#know(found);
      })
      // The runners that were found before stay.
      .catch((err: Error) => this.#log.warn({ err: errorText(err) }, "looking up the runners failed"))
      .finally(() => {
        if (this.#isClosed) return;
        const pause = this.#pool.size === 0 ? DISCOVER_MS / 10 : DISCOVER_MS;
        this.#discovers = setTimeout(() => this.#discover(how), pause).unref();
      });
  }

  #know(found: readonly FoundRunner[]): void {
    const now = performance.now();
    for (const runner of found) this.#connect(runner).goneSince = undefined;
    this.#pool.setMembers(
      found.map(({ address }) => address),
      now,
    );
    if (this.#discovery === "off") return;
    for (const [address, connection] of this.#connections) {
      if (this.#pool.has(address)) continue;
      connection.goneSince ??= now;
      if (!connection.isIdle || now - connection.goneSince < KEPT_MS) continue;
      this.#connections.delete(address);
      void connection.close();
    }
  }

  #connect(runner: FoundRunner): Connection {
    const known = this.#connections.get(runner.address);
    if (known !== undefined) return known;
    const made = new Connection(runner, this.isDirect ? CONNECT_MS : undefined, this.#tls);
    this.#connections.set(runner.address, made);
    return made;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#ticks);
    clearTimeout(this.#discovers);
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }
}

export const rootOf = (url: string) => url.replace(/\/(api\/v2\/?)?$/, "");
