/**
 * Components that are started one by one, as operators of several machines start them: over one Redis, with secrets and settings of
 * their own, each as often and wherever a test wants it.
 */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ServiceProcess } from "@svc/cli/topology";
import { type RunningComponent, startComponent } from "@svc/test-kit/components/component";
import { type PrivateRedis, type RedisOptions, startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";

type Variables = Readonly<Record<string, string>>;

/** Beside the slots of a runner: one for its health, one that is made anew. */
const SPARE_JAILS = 2;
/** Of a runner. Each has a jail, and no slot. */
const MOST_PAUSED = 8;
/** Ends with the tests' process. */
const ATTACHED = ["/usr/bin/setpriv", "--pdeathsig", "TERM"];

export interface Runner {
  jaild: Jaild;
  component: RunningComponent;
}

interface RunnerOptions {
  slots: number;
  env: Variables;
  through?: readonly string[];
}

export class ByHand {
  readonly redis: PrivateRedis;
  readonly #shared: Variables;
  readonly #own: Partial<Record<ServiceProcess, Variables>>;
  readonly #folder: string;
  /** In the order of their start. */
  readonly #running = new Set<RunningComponent | Jaild>();
  readonly #left: string[] = [];

  private constructor(redis: PrivateRedis, shared: Variables) {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    this.redis = redis;
    this.#folder = mkdtempSync(join(tmpdir(), "svc-by-hand-"));
    this.#shared = {
      SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
      SVC_PERSIST_SESSIONS: "true",
      REDIS_URL: redis.url,
      ...OPEN_PROGRAM_LIMITS,
      ...shared,
    };
    this.#own = {
      api: { LOCAL_MODE: "true", SVC_CONTINUATION_SECRET: newSecret() },
      worker: { SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey },
      runner: {
        SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: publicKey,
        SANDBOX_PACKAGES_DIRECTORY: dirname(IMAGE),
        SANDBOX_WARM_START: "off",
      },
      "egress-gateway": { SVC_EGRESS_GRANT_SECRET: newSecret() },
      "file-server": { STORAGE_DRIVER: "fs", STORAGE_DIR: this.#folder },
    };
  }

  /** `shared`: settings of all components. */
  static async start(shared: Variables, redis: RedisOptions = {}): Promise<ByHand> {
    return new ByHand(await startRedis({ kept: true, ...redis }), shared);
  }

  async start(
    name: ServiceProcess,
    env: Variables,
    through: readonly string[] = ATTACHED,
  ): Promise<RunningComponent> {
    // A component that starts to listen is ready a little later, and holds nobody up who waits for that.
    const variables = { ...this.#shared, ...this.#own[name], ...env };
    const component = await startComponent(name, variables, "running", through);
    this.#running.add(component);
    return component;
  }

  /** With a jaild of its own. */
  async startRunner({ slots, env, through = ATTACHED }: RunnerOptions): Promise<Runner> {
    const ready = slots + SPARE_JAILS;
    const jaild = await Jaild.start({ slots: ready + MOST_PAUSED, ready, zygotes: false, through });
    this.#running.add(jaild);
    const variables = {
      SANDBOX_JAIL_SOCKET: jaild.socket,
      SANDBOX_TOOL_DIRECTORY: jaild.tools,
      SANDBOX_MAX_CONCURRENT_JOBS: String(slots),
      SANDBOX_MAX_PAUSED: String(MOST_PAUSED),
      ...env,
    };
    return { jaild, component: await this.start("runner", variables, through) };
  }

  /** In order: what it has accepted is finished first. */
  async end(component: RunningComponent): Promise<void> {
    this.#running.delete(component);
    await component.kill("SIGTERM");
  }

  /** The runner first, which finishes what it has accepted. */
  async endRunner({ jaild, component }: Runner): Promise<void> {
    await this.end(component);
    this.#running.delete(jaild);
    await this.#endJaild(jaild);
  }

  async #endJaild(jaild: Jaild): Promise<void> {
    await jaild.stop();
    this.#left.push(...jaild.groups.map((group) => `control group ${group}`));
  }

  /** Ends all that still runs, the last one first, and answers what was left of jails. */
  async stop(): Promise<string[]> {
    for (const one of [...this.#running].reverse()) {
      this.#running.delete(one);
      if (one instanceof Jaild) await this.#endJaild(one);
      else await one.kill("SIGTERM");
    }
    await this.redis.stop();
    rmSync(this.#folder, { recursive: true, force: true });
    return this.#left;
  }
}

/** Nothing runs and nothing is paused. */
export async function isIdle({ component }: Runner): Promise<boolean> {
  const text = await (await fetch(`${component.url}/metrics`)).text();
  const states = [...text.matchAll(/^svc_sandbox_active_executions\{state="\w+"\} (\d+)$/gm)];
  return states.length > 0 && states.every(([, count]) => Number(count) === 0);
}
