/**
 * A guest from its boot to its end. It is hostile from its first program on: all that it can do is to answer requests, and to open
 * connections that lead to the gateway.
 */
import { randomBytes } from "node:crypto";
import { type ClientRequest, type RequestOptions, request } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "../channel/bridge.ts";
import { Channel } from "../channel/channel.ts";
import { encodePreface } from "../channel/preface.ts";
import type { Machine, MachineSpec, Monitor } from "../monitor/monitor.ts";

const SEED_BYTES = 64;
const READY_POLL_MS = 100;
const MAX_HEAD_BYTES = 16 * 1024;

export interface GuestOptions {
  monitor: Monitor;
  machine: MachineSpec;
  /** Environment of its runner and its jaild. */
  env: Record<string, string>;
  connectGateway: () => Duplex;
}

export class Guest {
  readonly #machine: Machine;
  readonly #requests: Channel;
  /** Why it has ended. Never rejects. */
  readonly ended: Promise<string>;
  #isOver = false;

  constructor({ monitor, machine, env, connectGateway }: GuestOptions) {
    this.#machine = monitor.boot(machine);
    this.ended = this.#machine.ended.then((reason) => {
      this.#isOver = true;
      return reason;
    });
    const { requests, gateway } = this.#machine.connect();
    const onEnd = () => void this.end();
    requests.write(encodePreface({ env, seed: randomBytes(SEED_BYTES).toString("base64") }));
    this.#requests = new Channel(requests, { onEnd });
    new Channel(gateway, { onStream: (stream) => join(stream, connectGateway()), onEnd });
  }

  get pid(): number {
    return this.#machine.pid;
  }

  /** A request to its runner. Whoever sends it bounds the answer. */
  request(options: RequestOptions): ClientRequest {
    return request({
      ...options,
      host: "guest",
      agent: false,
      maxHeaderSize: MAX_HEAD_BYTES,
      createConnection: () => this.#requests.open() as never,
    });
  }

  /** Resolves when its runner listens; rejects when the guest has ended, or is not there in time. */
  async ready(limitMs: number): Promise<void> {
    const end = performance.now() + limitMs;
    while (!(await this.#isAlive())) {
      if (this.#isOver) throw new Error(`the guest has ended: ${await this.ended}`);
      if (performance.now() > end) throw new Error("the guest was not ready in time");
      await sleep(READY_POLL_MS);
    }
  }

  #isAlive(): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#isOver) return resolve(false);
      this.request({ method: "GET", path: "/health" })
        .once("response", (answer) => {
          answer.once("error", () => undefined).resume();
          resolve(answer.statusCode === 200);
        })
        .once("error", () => resolve(false))
        .end();
    });
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
