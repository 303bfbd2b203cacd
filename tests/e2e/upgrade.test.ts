/**
 * A rolling upgrade of several machines in the order of docs/operate.md, from the last version to this one, and back in the reverse
 * order, under load: no accepted request is lost, and what one version left the other goes on with.
 */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { resolveInstance } from "@svc/cli/instance";
import { RESTARTABLE } from "@svc/cli/supervisor/rolling";
import type { ComponentName } from "@svc/cli/topology";
import { versionOf } from "@svc/cli/version";
import { canaryKey, type ToolCallRequired, type UploadedFile } from "@svc/contracts";
import { Api } from "@svc/test-kit/system/api";
import { freePort, freePorts } from "@svc/test-kit/system/free-ports";
import { holdNamespaces, leftovers, takeBaseline } from "@svc/test-kit/system/leftovers";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { declare, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BalancedApi, MixedLoad } from "./support/mixed-load.ts";
import { openStore } from "./support/store.ts";
import { RunningComponent, type Variables, Version } from "./support/version.ts";

/** The last version that people run. */
const LAST = "b8b217c1fa5e82fa0df805867f4afd60a2d7dca7";
/** It builds its image. */
const PREPARE_MS = 1_800_000;
const ROLL_MS = 900_000;

/** Each service in a process of its own, and programs in jails. */
const ORDER = RESTARTABLE.filter((name) => name !== "combined" && name !== "launcher");
/** The port of a replica that runs beside the one that it replaces. */
const BESIDE: Partial<Record<ComponentName, string>> = { worker: "WORKER_HEALTH_PORT", api: "SERVICE_PORT" };

const baseline = takeBaseline();
const api = new BalancedApi();
const running = new Map<ComponentName, RunningComponent>();
let last: Version;
let dataDir: string;
let variables: Variables;
let apiUrl: string;

const instance = () => resolveInstance({ "data-dir": undefined, "port-offset": undefined }, { ...variables });

async function start(version: Version, name: ComponentName, env: Variables = {}): Promise<RunningComponent> {
  return RunningComponent.start(version, name, variables, { env, logsDir: instance().logsDir });
}

async function end(component: RunningComponent | undefined): Promise<void> {
  expect([component?.name, await component?.stop()]).toEqual([component?.name, 0]);
}

beforeAll(async () => {
  last = Version.at(LAST);
  dataDir = realpathSync(mkdtempSync(join(tmpdir(), "svc-upgrade-")));
  chmodSync(dataDir, 0o711);
  const env = {
    SVC_DATA_DIR: dataDir,
    SANDBOX_MAX_CONCURRENT_JOBS: "4",
  };
  variables = { ...(await freePorts()), ...OPEN_PROGRAM_LIMITS, ...ONE_BY_ONE, ...env };
  // The last version installs itself and makes its data folder, with a link to its image.
  await last.svc(["up", "-d", "--no-example"], variables);
  await last.svc(["down"], variables);
  mkdirSync(dirname(instance().redisSocket), { recursive: true });
  for (const name of ["redis", "jaild", ...ORDER] as const) running.set(name, await start(last, name));
  apiUrl = `${instance().url}/v1`;
  api.add(apiUrl);
}, PREPARE_MS);

afterAll(async () => {
  const namespaces = holdNamespaces(instance(), baseline);
  for (const name of ["api", "worker", "runner", "jaild", ...ORDER, "redis"] as const) {
    await running.get(name)?.stop();
    running.delete(name);
  }
  const left = leftovers(instance(), baseline, namespaces.names);
  namespaces.release();
  rmSync(dataDir, { recursive: true });
  last.remove();
  expect(left.filter((what) => !what.startsWith("file run/"))).toEqual([]);
});

/** Replaces a component; workers and replicas of the API by one beside them. A runner goes with its jaild. */
async function replace(name: ComponentName, version: Version, load: MixedLoad): Promise<void> {
  const before = running.get(name);
  const port = BESIDE[name];
  if (port === undefined) {
    await end(before);
    if (name === "runner") {
      await end(running.get("jaild"));
      running.set("jaild", await start(version, "jaild"));
    }
    running.set(name, await start(version, name));
    return;
  }
  const number = await freePort();
  running.set(name, await start(version, name, { [port]: String(number) }));
  if (name === "api") api.add(`http://127.0.0.1:${number}/v1`);
  load.during(`while the ${name} had a replica of each version`);
  await load.onceMore();
  if (name === "api") {
    api.remove(apiUrl);
    apiUrl = `http://127.0.0.1:${number}/v1`;
  }
  await end(before);
}

const TOOLS = { add: ({ a, b }: { a: number; b: number }) => a + b };
const pauseProgram = () =>
  startPaused(api, {
    code: "first = await add(a=1, b=2)\nprint(first)\nprint(await add(a=first, b=4))",
    language: "python",
    tools: declare(["add"]),
  });
async function goOn(paused: ToolCallRequired): Promise<void> {
  const { answer } = await driveOn(api, paused, TOOLS);
  expect(answer).toMatchObject({ status: "completed", stdout: "3\n7\n", tool_calls_made: 2 });
}

/** What a balancer asks: replicas of either version find that programs run, by a canary of the workers that there are now. */
async function expectReady(): Promise<void> {
  const store = openStore({ instance: instance() });
  await store.del(canaryKey("python"), canaryKey("other"));
  store.disconnect();
  await expect.poll(async () => (await api.send("GET", "/ready")).status).toBe(200);
}

/** Replaces all components in an order under load. Each step has a program that paused before it and goes on after it. */
async function roll(version: Version, order: readonly ComponentName[]): Promise<void> {
  const load = new MixedLoad(api);
  const throughout = await pauseProgram();
  const [stored] = await api.upload({ "kept.txt": "kept" });
  try {
    await load.onceMore();
    for (const name of order) {
      const paused = await pauseProgram();
      load.during(`while the ${name} was replaced`);
      const replaced = replace(name, version, load);
      await (name === "file-server" ? load.withoutFileServer(replaced) : replaced);
      load.during(`after the ${name} was replaced`);
      await load.onceMore();
      await goOn(paused);
      await expectReady();
    }
  } finally {
    await load.end();
  }
  expect(load.failures).toEqual([]);
  console.log(`done meanwhile: ${[...load.done].map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
  await goOn(throughout);
  expect((await api.bytes(stored as UploadedFile)).toString()).toBe("kept");
}

/** Of the API that takes requests. The last version lies in a folder without a history. */
async function commitOfApi(): Promise<string | undefined> {
  const { text } = await new Api(apiUrl, { isOtherVersion: true }).send("GET", "/metrics");
  return /^svc_build_info{.*commit="([^"]*)".*} 1$/m.exec(text)?.[1];
}

test(
  "upward in the documented order, no request is lost",
  async () => {
    expect(await commitOfApi()).toBe("unknown");
    await roll(Version.current(), ORDER);
    expect(await commitOfApi()).toBe(versionOf().commit);
  },
  ROLL_MS,
);

test(
  "back in the reverse order, no request is lost",
  async () => {
    await roll(last, ORDER.toReversed());
    expect(await commitOfApi()).toBe("unknown");
  },
  ROLL_MS,
);
