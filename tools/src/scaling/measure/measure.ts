/**
 * Measures what the capacity model needs and latency benchmarks do not show: the processor time of each component where
 * each is a process of its own, the work of requests in Redis, and the bytes between components. These are sums of work,
 * which other work on the machine changes little.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type PrivateCopy, startPrivateCopy } from "@svc/test-kit/system/private-copy";
import { LoadClient } from "../../bench/load-client.ts";
import { cpuPerRequest } from "../../bench/measure.ts";
import { TOOL_SCENARIOS } from "../../bench/programmatic/scenarios.ts";
import { begin } from "../../bench/run.ts";
import { SCENARIOS, type Scenario } from "../../bench/scenarios.ts";
import { settingsOf } from "../../bench/settings.ts";
import { round } from "../../bench/statistics.ts";
import type { Accounts, KindAccount } from "./result.ts";
import {
  byteSeconds,
  bytesBetween,
  type Connections,
  connectionsAt,
  countStore,
  keysOf,
  type StoreCount,
  storeOf,
} from "./traffic.ts";

const KINDS = [
  "hello-python",
  "hello-bash",
  "hello-javascript",
  "pandas",
  "plot",
  "files-in",
  "file-out",
  "calls-1",
  "calls-20",
  "upload-1mb",
  "download-1mb",
];
const PORTS = ["api", "runner", "egress-gateway", "file-server", "tool-call-server"] as const;
/** Requests after which V8 has compiled the components' code. */
const WARM_UP = 300;
/** Pause before counters are read: removals and revocations come after answers. */
const SETTLE_MS = 1500;
const IDLE_SECONDS = 4;

/** `requests`: of each kind. Needs root. */
export async function measureAccounts(requests: number): Promise<Accounts> {
  const { progress, end } = await begin(KINDS.length);
  const env = { ...settingsOf("warm"), SVC_TOPOLOGY: "separate", CANARY_INTERVAL_MS: "0" };
  const copy = await startPrivateCopy({ env });
  const client = new LoadClient(copy.url);
  try {
    const all = [...SCENARIOS, ...TOOL_SCENARIOS];
    const scenarios = KINDS.flatMap((kind) => all.filter(({ name }) => name === kind));
    const [hello] = scenarios as [Scenario];
    for (let count = 0; count < WARM_UP; count++) await hello.run(client, []);
    const kinds: KindAccount[] = [];
    for (const scenario of scenarios) {
      kinds.push(await progress.step(scenario.name, () => accountOf(copy, client, scenario, requests)));
    }
    return { ...end(), version: 1, kind: "accounts", kinds };
  } finally {
    client.close();
    await copy.stop();
  }
}

async function accountOf(
  copy: PrivateCopy,
  client: LoadClient,
  scenario: Scenario,
  requests: number,
): Promise<KindAccount> {
  const redis = storeOf(copy.instance.redisSocket);
  try {
    const prepared = (await scenario.prepare?.(client)) ?? [];
    await scenario.run(client, prepared);
    await sleep(SETTLE_MS);
    const keys = await keysOf(redis);
    const idle = await idleStore(redis);
    const start = performance.now();
    const storeBefore = await countStore(redis);
    const bytesBefore = portsOf(copy);
    const count = Math.max(5, Math.ceil(requests * Math.min(scenario.share, 0.5)));
    const cpu = await cpuPerRequest(copy, client, scenario, prepared, count);
    await sleep(SETTLE_MS);
    const per = (total: number) => round(total / cpu.requests);
    const bytesAfter = portsOf(copy);
    const storeAfter = await countStore(redis);
    const seconds = (performance.now() - start) / 1000;
    const kept = await byteSeconds(redis, keys);
    const store = (name: keyof StoreCount) =>
      per(storeAfter[name] - storeBefore[name] - idle[name] * seconds);
    return {
      name: scenario.name,
      requests: cpu.requests,
      cpuMs: cpu.components,
      redis: {
        commands: store("commands"),
        inBytes: store("inBytes"),
        outBytes: store("outBytes"),
        byteSeconds: per(kept),
      },
      bytes: Object.fromEntries(
        PORTS.map((name) => [name, per(bytesBetween(bytesBefore[name], bytesAfter[name]))]),
      ),
    };
  } finally {
    redis.disconnect();
  }
}

/** The work of Redis in a second without requests. */
async function idleStore(redis: ReturnType<typeof storeOf>): Promise<StoreCount> {
  const before = await countStore(redis);
  await sleep(IDLE_SECONDS * 1000);
  const after = await countStore(redis);
  const per = (name: keyof StoreCount) => (after[name] - before[name]) / IDLE_SECONDS;
  return { commands: per("commands"), inBytes: per("inBytes"), outBytes: per("outBytes") };
}

function portsOf(copy: PrivateCopy): Record<(typeof PORTS)[number], Connections> {
  const { ports } = copy.state();
  const of = (name: (typeof PORTS)[number]) => connectionsAt(ports[name]);
  return {
    api: of("api"),
    runner: of("runner"),
    "egress-gateway": of("egress-gateway"),
    "file-server": of("file-server"),
    "tool-call-server": of("tool-call-server"),
  };
}
