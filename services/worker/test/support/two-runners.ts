/** A whole system by hand, whose one worker has two runners, each with a jaild of its own as on a machine of its own. */
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { type RunningComponent, startComponent } from "@svc/test-kit/components/component";
import { INTERNAL_TOKEN, startFileServer } from "@svc/test-kit/components/file-server";
import { startRedis } from "@svc/test-kit/components/redis";
import { startServer } from "@svc/test-kit/components/tool-call-server";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { IMAGE, Jaild } from "@svc/test-kit/jail/jaild";
import { Api } from "@svc/test-kit/system/api";
import { freePort } from "@svc/test-kit/system/free-ports";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";

const SLOTS = 2;

export interface TestRunner {
  url: string;
  kill: () => Promise<void>;
  signal: (signal: NodeJS.Signals) => void;
  /** Brings it back at the same address. */
  restart: () => Promise<void>;
  /** How many runs it has counted since its start. */
  runs: () => Promise<number>;
}

export async function startTwoRunners() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of stops.toReversed()) await end();
  };
  const start = async (...[name, env]: Parameters<typeof startComponent>): Promise<RunningComponent> => {
    const component = await startComponent(name, env);
    stops.push(() => component.kill());
    return component;
  };
  const redis = await startRedis();
  stops.push(() => redis.stop());
  const files = await startFileServer(redis.url);
  stops.push(() => files.stop());
  const toolCalls = await startServer(redis.url, { SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN });
  stops.push(() => toolCalls.stop());
  const shared = {
    SVC_INTERNAL_SERVICE_TOKEN: INTERNAL_TOKEN,
    REDIS_URL: redis.url,
    FILE_SERVER_URL: files.url,
    TOOL_CALL_SERVER_URL: toolCalls.url,
  };
  const gateway = await start("egress-gateway", {
    ...shared,
    SVC_EGRESS_GRANT_SECRET: newSecret(),
    EGRESS_GATEWAY_PORT: "0",
  });
  const startRunner = async (): Promise<TestRunner> => {
    const jaild = await Jaild.start({ slots: SLOTS + 2, zygotes: false });
    stops.push(() => jaild.stop());
    const PORT = String(await freePort());
    const { host, port } = new URL(gateway.url);
    const env = {
      PORT,
      SANDBOX_FORWARD_TARGET: host,
      SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: port,
      SANDBOX_JAIL_SOCKET: jaild.socket,
      SANDBOX_TOOL_DIRECTORY: jaild.tools,
      SANDBOX_PACKAGES_DIRECTORY: join(IMAGE, ".."),
      SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY: publicKey,
      SANDBOX_MAX_CONCURRENT_JOBS: String(SLOTS),
      SANDBOX_WARM_START: "off",
      // Shorter than what is away is waited for.
      SANDBOX_QUEUE_WAIT_MS: "5000",
    };
    let runner = await startComponent("runner", env);
    stops.push(() => runner.kill());
    const url = `http://127.0.0.1:${PORT}`;
    return {
      url,
      kill: () => runner.kill(),
      signal: (signal) => process.kill(runner.pid, signal),
      restart: async () => {
        runner = await startComponent("runner", env);
      },
      runs: async () => {
        const text = await (await fetch(`${url}/metrics`)).text();
        const counts = text.matchAll(/^svc_sandbox_executions_total\{.*\} (\d+)$/gm);
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      },
    };
  };
  try {
    const runners = [await startRunner(), await startRunner()] as const;
    const worker = await start("worker", {
      ...shared,
      SVC_EXECUTION_MANIFEST_PRIVATE_KEY: privateKey,
      EGRESS_GATEWAY_URL: gateway.url,
      SANDBOX_ENDPOINT: runners.map(({ url }) => url).join(","),
      WORKER_HEALTH_PORT: "0",
      PYTHON_CONCURRENCY: String(2 * SLOTS),
      OTHER_CONCURRENCY: String(2 * SLOTS),
    });
    const api = await start("api", {
      ...shared,
      ...OPEN_LIMITS,
      LOCAL_MODE: "true",
      SERVICE_PORT: "0",
      EGRESS_GATEWAY_URL: gateway.url,
    });
    return { runners, worker, api: new Api(`${api.url}/v1`), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export type TwoRunners = Awaited<ReturnType<typeof startTwoRunners>>;
