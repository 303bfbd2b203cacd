/**
 * A guest from its boot to its end. It counts as hostile from its first program on. It can only answer requests, and open connections that lead
 * to the gateway.
 */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { InnerClient } from "@svc/service-kit";
import { join } from "../channel/bridge.ts";
import { Channel } from "../channel/channel.ts";
import { Control } from "../channel/control.ts";
import { encodePreface, type GuestEnvironment } from "../channel/preface.ts";
import type { Machine, MachineSpec, Monitor } from "../monitor/monitor.ts";

const READY_POLL_MS = 250;
/** Longest wait for an update: on a busy machine a guest's vCPUs may wait long for a processor. */
const UPDATE_MS = 10_000;
const CONNECTIONS = 8;
/**
 * Far more than the runs of a guest need. Each stream is a connection of this machine, whose port stays in use for a while after the connection
 * ends.
 */
const MAX_GATEWAY_STREAMS = 16_384;
/** Time in which a guest notices that its connections are closed. */
const QUIET_MS = 1000;

export interface GuestOptions {
  monitor: Monitor;
  machine: MachineSpec;
  /** Environment of its runner and its jaild. */
  env: GuestEnvironment;
  connectGateway: () => Duplex;
  /** Longest time until its runner accepts runs. */
  bootMs: number;
  /** Number of the last stream of the saved guest, when this guest resumes from one (`machine.from`). */
  lastStream?: number;
}

export class Guest {
  readonly #machine: Machine;
  readonly #requests: Channel;
  readonly #control: Control;
  readonly #bootMs: number;
  /** Clients of the guest's runner: `runs` for new runs, `held` for a paused program that only this guest has. */
  readonly runs: InnerClient;
  readonly held: InnerClient;
  /** Resolves with the reason when the guest has ended. Never rejects. */
  readonly ended: Promise<string>;
  #isOver = false;

  constructor({ monitor, machine, env, connectGateway, bootMs, lastStream }: GuestOptions) {
    this.#bootMs = bootMs;
    this.#machine = monitor.boot(machine);
    const { requests, gateway, control } = this.#machine.connect();
    const onEnd = () => void this.end();
    if (machine.from === undefined) requests.write(encodePreface(env));
    this.#control = new Control(control, onEnd);
    this.#requests = new Channel(requests, {
      onEnd,
      ...(lastStream === undefined ? {} : { after: lastStream }),
    });
    new Channel(gateway, {
      onStream: (stream) => join(stream, connectGateway()),
      most: MAX_GATEWAY_STREAMS,
      onEnd,
    });
    this.runs = this.#client("sandbox_execution_failed");
    this.held = this.#client("execution_not_found");
    this.ended = this.#machine.ended.then(async (reason) => {
      this.#isOver = true;
      await Promise.all([this.runs.close(), this.held.close()]);
      return reason;
    });
  }

  #client(unreachable: "sandbox_execution_failed" | "execution_not_found"): InnerClient {
    const connect = () => this.#requests.open();
    return new InnerClient({ baseUrl: "http://guest", unreachable, connections: CONNECTIONS, connect });
  }

  get pid(): number {
    return this.#machine.pid;
  }

  /** Resolves when the guest's runner accepts runs; rejects when the guest has ended or is not ready in time. */
  async ready(now?: number): Promise<void> {
    const end = performance.now() + this.#bootMs;
    const leftMs = () => Math.max(1, end - performance.now());
    await this.#machine.running;
    await this.#control.update(leftMs(), now);
    while (!(await this.#takesRuns(leftMs()))) {
      if (this.#isOver) throw new Error(`the guest has ended: ${await this.ended}`);
      if (performance.now() > end) throw new Error("the guest was not ready in time");
      await sleep(READY_POLL_MS);
    }
  }

  /** Asks for another route than health and metrics, which are all that a runner serves before it is ready. */
  async #takesRuns(limitMs: number): Promise<boolean> {
    try {
      const call = { method: "GET", path: "/api/v2/runtimes", requestId: "ready" } as const;
      return await this.runs.whole({ ...call, timeoutMs: limitMs }, async ({ statusCode, body }) => {
        await body.dump();
        return statusCode === 200;
      });
    } catch {
      return false;
    }
  }

  /** Saves the state from which other guests resume, and ends this guest. Resolves with the number of its last stream. */
  async save(): Promise<number> {
    await Promise.all([this.runs.close(), this.held.close()]);
    await sleep(QUIET_MS);
    const { last } = this.#requests;
    await this.#machine.save();
    return last;
  }

  /** Sets the guest's clock and reseeds its kernel's random numbers. When the guest does not take them, it is ended and this rejects. */
  update(): Promise<void> {
    return this.#control.keepInStep(UPDATE_MS);
  }

  pause(): void {
    this.#machine.pause();
  }

  resume(): void {
    this.#machine.resume();
  }

  end(): Promise<void> {
    return this.#machine.end();
  }
}
