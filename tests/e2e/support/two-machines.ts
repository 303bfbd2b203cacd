/** Two machines with a worker and a runner each, and this one with all the rest: each machine in a network of its own. */
import { readFileSync } from "node:fs";
import type { RunningComponent } from "@svc/test-kit/components/component";
import { freePort } from "@svc/test-kit/system/free-ports";
import { type Machine, Machines } from "@svc/test-kit/system/machines";
import { ByHand, type Runner } from "./by-hand.ts";

/** Of each runner, and of each worker's two queues. */
export const SLOTS = 2;
const RUNNER_PORT = 2000;
const WORKER_PORT = 3113;
/** Of the times in /proc (proc(5)), on every Linux that Node runs on. */
const TICK_MS = 10;

export interface Site {
  machine: Machine;
  runner: Runner;
  worker: RunningComponent;
}

type Variables = Readonly<Record<string, string>>;

export class TwoMachines {
  readonly hand: ByHand;
  readonly url: string;
  readonly sites: Site[] = [];
  readonly #machines: Machines;
  readonly #two: readonly Machine[];
  readonly #gateway: RunningComponent;
  readonly #pids: number[];

  private constructor(
    machines: Machines,
    two: readonly Machine[],
    hand: ByHand,
    api: RunningComponent,
    gateway: RunningComponent,
    pids: number[],
  ) {
    this.#machines = machines;
    this.#two = two;
    this.hand = hand;
    this.url = `${api.url}/v1`;
    this.#gateway = gateway;
    this.#pids = pids;
  }

  /** Without workers and runners. `shared`: settings of all components. */
  static async start(shared: Variables): Promise<TwoMachines> {
    const machines = await Machines.start();
    let hand: ByHand | undefined;
    try {
      const two = [await machines.add(), await machines.add()];
      const redis = { host: machines.here, port: await freePort() };
      hand = await ByHand.start(
        { SVC_ALLOW_PLAIN_HTTP: "true", REDIS_URL: `redis://${redis.host}:${redis.port}`, ...shared },
        { at: redis },
      );
      const files = await hand.start("file-server", { FILE_SERVER_PORT: "0" });
      const calls = await hand.start("tool-call-server", { TOOL_CALL_SERVER_PORT: "0" });
      const gateway = await hand.start("egress-gateway", {
        EGRESS_GATEWAY_HOST: machines.here,
        EGRESS_GATEWAY_PORT: "0",
        EGRESS_GATEWAY_FILE_SERVER_URL: files.url,
        EGRESS_GATEWAY_TOOL_CALL_SERVER_URL: calls.url,
      });
      const api = await hand.start("api", {
        SERVICE_PORT: String(await freePort()),
        FILE_SERVER_URL: files.url,
        TOOL_CALL_SERVER_URL: calls.url,
        EGRESS_GATEWAY_URL: gateway.url,
      });
      const pids = [files, calls, gateway, api].map(({ pid }) => pid);
      return new TwoMachines(machines, two, hand, api, gateway, pids);
    } catch (error) {
      await hand?.stop();
      await machines.remove();
      throw error;
    }
  }

  /** Its worker knows the runners of both machines, whether they run or not. */
  async startSite(at: 0 | 1): Promise<Site> {
    const machine = this.#two[at] as Machine;
    const { address, through } = machine;
    const runner = await this.hand.startRunner({
      slots: SLOTS,
      through,
      env: {
        RUNNER_HOST: address,
        PORT: String(RUNNER_PORT),
        SANDBOX_FORWARD_TARGET: new URL(this.#gateway.url).host,
        SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: new URL(this.#gateway.url).port,
      },
    });
    const worker = await this.hand.start(
      "worker",
      {
        WORKER_HOST: address,
        WORKER_HEALTH_PORT: String(WORKER_PORT),
        EGRESS_GATEWAY_URL: this.#gateway.url,
        SANDBOX_ENDPOINT: this.#two.map((one) => `http://${one.address}:${RUNNER_PORT}`).join(","),
        PYTHON_CONCURRENCY: String(SLOTS),
        OTHER_CONCURRENCY: String(SLOTS),
      },
      through,
    );
    const site = { machine, runner, worker };
    this.#pids.push(runner.jaild.pid, runner.component.pid, worker.pid);
    this.sites.push(site);
    return site;
  }

  /** Processor time so far of all components and jailds, with their children that have ended. */
  get cpuMs(): number {
    return this.#pids.reduce((sum, pid) => sum + ticksOf(pid) * TICK_MS, 0);
  }

  /** Answers what was left. */
  async stop(): Promise<string[]> {
    for (const { machine } of this.sites) machine.plug();
    const left = await this.hand.stop();
    await this.#machines.remove();
    return left;
  }
}

function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  // utime, stime, cutime, cstime: the fields 14 to 17.
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
}
