/** Two replicas of each component behind Services, replaced as the Deployments and the StatefulSet of deploy/kubernetes replace their pods. */
import { setTimeout as sleep } from "node:timers/promises";
import type { RunningComponent } from "@svc/test-kit/components/component";
import { freePort } from "@svc/test-kit/system/free-ports";
import { until } from "@svc/test-kit/system/processes";
import { Balancer } from "./balancer.ts";
import { ByHand, type Runner } from "./by-hand.ts";

type Variables = Readonly<Record<string, string>>;

/** Of each runner, and of each worker's two queues. */
export const SLOTS = 2;
const REPLICAS = [0, 1] as const;
const READY_MS = 60_000;
/** Instead of the 10 s of preStop: a connection that the balancer has just made has its request by then. */
const PRE_STOP_MS = 1000;
/** With a Service, and where a replica listens. */
const SERVED = {
  "file-server": "FILE_SERVER_PORT",
  "tool-call-server": "TOOL_CALL_SERVER_PORT",
  "egress-gateway": "EGRESS_GATEWAY_PORT",
  api: "SERVICE_PORT",
} as const;
type Served = keyof typeof SERVED;

/** As in the label update-stage. */
export const STAGES = [
  "file-server",
  "tool-call-server",
  "egress-gateway",
  "runner",
  "worker",
  "api",
] as const;

type Replicated = Exclude<(typeof STAGES)[number], "runner">;

export class Deployments {
  readonly hand: ByHand;
  readonly runners: Runner[] = [];
  readonly #services: Record<Served | "runner", Balancer>;
  readonly #runnerPorts: readonly number[];
  readonly #replicas = new Map<Replicated, RunningComponent[]>();

  private constructor(hand: ByHand, services: Record<Served | "runner", Balancer>, ports: readonly number[]) {
    this.hand = hand;
    this.#services = services;
    this.#runnerPorts = ports;
  }

  /** `shared`: settings of all components. */
  static async start(shared: Variables): Promise<Deployments> {
    const services = {
      "file-server": await Balancer.start(),
      "tool-call-server": await Balancer.start(),
      "egress-gateway": await Balancer.start(),
      api: await Balancer.start(),
      runner: await Balancer.start(),
    };
    const ports = [await freePort(), await freePort()];
    const hand = await ByHand.start({ SHUTDOWN_GRACE_MS: "75000", ...shared });
    const deployments = new Deployments(hand, services, ports);
    try {
      for (const name of STAGES)
        for (const at of REPLICAS) {
          if (name === "runner") await deployments.#startRunner(at);
          else await deployments.#startReplica(name);
        }
    } catch (error) {
      await deployments.stop();
      throw error;
    }
    return deployments;
  }

  /** With /v1. */
  get url(): string {
    return `http://${this.#services.api.host}/v1`;
  }

  /** Every replica of it, one after the other. */
  async update(name: (typeof STAGES)[number]): Promise<void> {
    for (const at of REPLICAS.toReversed()) {
      if (name === "runner") await this.#replaceRunner(at);
      else await this.#replaceReplica(name);
    }
  }

  /** maxSurge 1, maxUnavailable 0: the new one is ready before the old one ends. */
  async #replaceReplica(name: Replicated): Promise<void> {
    const [old] = this.#replicas.get(name) ?? [];
    if (old === undefined) throw new Error(`no replica of ${name} runs`);
    await this.#startReplica(name);
    this.#replicas.set(name, this.#replicas.get(name)?.filter((one) => one !== old) ?? []);
    if (name !== "worker") this.#services[name].remove(old.url);
    await sleep(PRE_STOP_MS);
    await this.hand.end(old);
  }

  async #startReplica(name: Replicated): Promise<void> {
    const replica = await this.hand.start(name, await this.#variablesOf(name));
    await untilReady(`${replica.url}${name === "api" ? "/v1" : ""}/ready`);
    this.#replicas.set(name, [...(this.#replicas.get(name) ?? []), replica]);
    if (name !== "worker") this.#services[name].add(replica.url);
  }

  /** The old one ends first, with its jaild; the new one has its name. */
  async #replaceRunner(at: number): Promise<void> {
    const old = this.runners[at] as Runner;
    this.#services.runner.remove(old.component.url);
    await sleep(PRE_STOP_MS);
    await this.hand.endRunner(old);
    await this.#startRunner(at);
  }

  async #startRunner(at: number): Promise<void> {
    const { host } = this.#services["egress-gateway"];
    const url = this.#runnerUrls[at] as string;
    const env = {
      PORT: new URL(url).port,
      SANDBOX_ADVERTISED_URL: url,
      SANDBOX_FORWARD_TARGET: host,
      SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: new URL(`http://${host}`).port,
    };
    const runner = await this.hand.startRunner({ slots: SLOTS, env });
    await untilReady(`${url}/api/v2/health`);
    this.runners[at] = runner;
    this.#services.runner.add(url);
  }

  get #runnerUrls(): string[] {
    return this.#runnerPorts.map((port) => `http://127.0.0.1:${port}`);
  }

  async #variablesOf(name: Replicated): Promise<Variables> {
    const url = (service: Served | "runner") => `http://${this.#services[service].host}`;
    const gateway = { EGRESS_GATEWAY_URL: url("egress-gateway") };
    const stores = { FILE_SERVER_URL: url("file-server"), TOOL_CALL_SERVER_URL: url("tool-call-server") };
    switch (name) {
      case "worker":
        return {
          ...gateway,
          WORKER_HEALTH_PORT: String(await freePort()),
          SANDBOX_ENDPOINT: url("runner"),
          SANDBOX_RUNNER_URLS: this.#runnerUrls.join(","),
          PYTHON_CONCURRENCY: String(SLOTS),
          OTHER_CONCURRENCY: String(SLOTS),
        };
      case "api":
        return { ...gateway, ...stores, SERVICE_PORT: String(await freePort()) };
      case "egress-gateway":
        return {
          EGRESS_GATEWAY_PORT: "0",
          EGRESS_GATEWAY_FILE_SERVER_URL: stores.FILE_SERVER_URL,
          EGRESS_GATEWAY_TOOL_CALL_SERVER_URL: stores.TOOL_CALL_SERVER_URL,
        };
      default:
        return { [SERVED[name]]: "0" };
    }
  }

  /** Answers what was left. */
  async stop(): Promise<string[]> {
    const left = await this.hand.stop();
    await Promise.all(Object.values(this.#services).map((service) => service.close()));
    return left;
  }
}

async function untilReady(url: string): Promise<void> {
  const isReady = () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady, READY_MS, () => url);
}
