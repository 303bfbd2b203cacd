/**
 * Liveness and readiness while something is broken: the component whose work is hindered says so and why, nothing is started
 * again because of what it needs, and all are ready again by themselves. `./svc status` tells the cause.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Service } from "@svc/cli/instance";
import { findCgroups } from "@svc/cli/system/cgroups";
import type { ComponentName } from "@svc/cli/topology";
import { killProcess } from "@svc/test-kit/jail/host";
import { ROUTES } from "@svc/test-kit/system/health-routes";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { SmallDisk } from "@svc/test-kit/system/small-disk";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { exhaustDescriptors } from "./support/descriptor-limit.ts";
import {
  type Expected,
  isLive,
  reasonsAt,
  reasonsOf,
  SERVICES,
  untilAllReady,
  untilUnready,
} from "./support/readiness.ts";
import { startSkewed } from "./support/skewed.ts";
import { openStore } from "./support/store.ts";
import { svc } from "./support/svc.ts";

const SOON_MS = 60_000;

/** One for the data folder with Redis's log, one for objects. */
let disks: Record<"data" | "objects", SmallDisk>;
let system: System;
let env: Record<string, string>;
beforeAll(async () => {
  disks = { data: new SmallDisk("size=192m"), objects: new SmallDisk("size=16m") };
  env = {
    ...OPEN_LIMITS,
    ...ONE_BY_ONE,
    SVC_DATA_DIR: disks.data.folder,
    STORAGE_DIR: join(disks.objects.folder, "of-svc"),
  };
  system = await startSystem({ env });
});
afterAll(async () => {
  const left = await system?.stop();
  for (const disk of Object.values(disks)) disk.remove();
  expect(left).toEqual([]);
});
afterEach(() => untilAllReady(system));

/** How often each service was started again. */
const restarts = () =>
  system.state().components.flatMap(({ name, restarts }) => (name === "redis" ? [] : [[name, restarts]]));
const pidOf = (name: ComponentName) => system.pid(name);

/** Answers what takes it back. */
type Break = () => () => void;

function stopped(name: ComponentName): Break {
  return () => {
    const pid = pidOf(name);
    process.kill(pid, "SIGSTOP");
    return () => void process.kill(pid, "SIGCONT");
  };
}

function moved(path: () => string): Break {
  return () => {
    const from = path();
    renameSync(from, `${from}.away`);
    return () => renameSync(`${from}.away`, from);
  };
}

const redisGone: Break = () => {
  const takeBack = moved(() => join(system.instance.runDir, "redis-server"))();
  killProcess(pidOf("redis"));
  return takeBack;
};

/** The group over all jails takes no further process. */
const noProcesses: Break = () => {
  const groups = findCgroups(system.instance.cgroup).flatMap((own) => [own, join(own, "jails")]);
  const file = groups.map((group) => join(group, "pids.max")).findLast(existsSync);
  if (file === undefined) throw new Error("the jails have no limit of processes");
  const before = readFileSync(file, "utf8");
  writeFileSync(file, "1");
  return () => writeFileSync(file, before);
};

const memoryFull: Break = () => {
  const redis = openStore(system);
  const set = (bytes: string) => redis.config("SET", "maxmemory", bytes);
  void set("1");
  return () => void set("0").then(() => redis.disconnect());
};

/** Of all that have Redis. */
const ofRedis = (reason: RegExp): Expected => ({
  api: ["redis", reason],
  worker: ["redis", reason],
  "egress-gateway": ["redis", reason],
  "file-server": ["redis", reason],
  "tool-call-server": ["redis", reason],
});
const ofJails = (reason: RegExp): Expected => ({ runner: ["jail", reason], worker: ["runner", reason] });

interface Fault {
  break: Break;
  unready: Expected;
  /** In the table of `./svc status`. */
  status: RegExp;
}

const FAULTS: Record<string, Fault> = {
  "jaild that cannot be reached": {
    break: moved(() => system.instance.jailSocket),
    unready: ofJails(/jaild cannot be reached/),
    status: /^runner +\d+ +is not ready: jaild cannot be reached/m,
  },
  "jaild that is stopped": {
    break: stopped("jaild"),
    unready: ofJails(/jaild stands still|jaild gave no jail/),
    status: /^jaild +\d+ +is stopped by a signal \(kill -CONT \d+ lets it go on\)/m,
  },
  "a control group that takes no process": {
    break: noProcesses,
    unready: ofJails(/jaild cannot make a jail|jaild cannot make further jails/),
    status: /^runner +\d+ +is not ready: jaild cannot make/m,
  },
  "Redis that is gone": {
    break: redisGone,
    unready: ofRedis(/^Redis (cannot be reached|does not answer)$/),
    status: /^redis +- +is not running: /m,
  },
  "Redis that is stopped": {
    break: stopped("redis"),
    unready: ofRedis(/^Redis (does not answer|cannot be reached)$/),
    status: /^redis +\d+ +is stopped by a signal/m,
  },
  "Redis without memory": {
    break: memoryFull,
    unready: ofRedis(/^Redis takes no writes: its memory is full$/),
    status: /^api +\d+ +is not ready: Redis takes no writes: its memory is full/m,
  },
  "a full disk under Redis": {
    break: () => disks.data.fill(),
    unready: ofRedis(/^Redis cannot write to its disk; is the disk full\?$/),
    status: /^redis +\d+ +cannot write to its disk; is the disk full\?/m,
  },
  "a full disk under the objects": {
    break: () => disks.objects.fill(),
    unready: {
      "file-server": ["storage", /^object storage is full$/],
      api: ["file_server", /object storage is full/],
    },
    status: /^file-server +\d+ +is not ready: object storage is full/m,
  },
};

const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1);

/** Breaks it until all that is expected was seen, and waits until all are ready again. */
async function whileBroken(name: string, fault: Fault, then: () => Promise<void>): Promise<void> {
  const began = performance.now();
  const takeBack = fault.break();
  let shown = "";
  try {
    await untilUnready(fault.unready, system);
    shown = seconds(began);
    await then();
    expect((await svc(["status"], system.environment)).stdout).toMatch(fault.status);
  } finally {
    takeBack();
  }
  const takenBack = performance.now();
  await untilAllReady(system);
  console.log(`${name}: ${Object.keys(fault.unready).join(", ")}; ${shown} s, back ${seconds(takenBack)} s`);
}

describe("while something that others need is broken they are not ready, and alive", () => {
  test.each(Object.keys(FAULTS))("%s", async (name) => {
    const fault = FAULTS[name] as Fault;
    const before = restarts();
    await whileBroken(name, fault, async () => {
      for (const service of SERVICES)
        expect([service, await isLive(service, system)]).toEqual([service, true]);
      const others = SERVICES.filter((service) => !(service in fault.unready));
      for (const service of others)
        expect([service, await reasonsOf(service, system)]).toEqual([service, undefined]);
    });
    expect(restarts()).toEqual(before);
  });
});

describe("without file descriptors", () => {
  test.each(SERVICES)("the %s is not ready, and is again as soon as it has some", async (service) => {
    const takeBack = exhaustDescriptors(pidOf(service));
    try {
      // Its listener turns new connections away.
      await until(async () => {
        const reasons = await reasonsOf(service, system);
        return reasons !== undefined && ("unreachable" in reasons || "descriptors" in reasons);
      }, SOON_MS);
      const { stdout } = await svc(["status"], system.environment);
      expect(stdout).toMatch(
        new RegExp(`^${service} +\\d+ +(has no file descriptors left|is not ready: .*file descriptor)`, "m"),
      );
    } finally {
      takeBack();
    }
    await untilAllReady(system);
  });

  test("jaild makes no further jail, and the runner is not ready", async () => {
    const status = /^jaild +\d+ +has no file descriptors left|^runner +\d+ +is not ready: jaild cannot make/m;
    const unready = ofJails(/jaild cannot make further jails|jaild gave no jail/);
    const fault = { break: () => exhaustDescriptors(pidOf("jaild")), unready, status };
    await whileBroken("jaild without descriptors", fault, async () => undefined);
  });
});

describe("a clock that is a minute ahead", () => {
  test.each<[Service, RegExp]>([
    ["worker", /^its clock is \d+ s ahead of Redis's$/],
    ["egress-gateway", /^its clock is \d+ s ahead of Redis's$/],
    ["file-server", /^its clock is \d+ s ahead of Redis's$/],
    ["runner", /^its clock is \d+ s ahead of the gateway's$/],
  ])("makes the %s alone not ready, until it is right again", async (service, reason) => {
    const skewed = await startSkewed(service, system, { ...env, SANDBOX_WARM_START: "off" });
    const ready = () => reasonsAt(skewed.url + ROUTES[service][1]);
    try {
      await until(async () => (await ready()) === undefined, SOON_MS, ready);
      skewed.skew();
      await until(async () => reason.test((await ready())?.clock ?? ""), SOON_MS, ready);
      await untilAllReady(system);
      skewed.skew();
      await until(async () => (await ready()) === undefined, SOON_MS, ready);
    } finally {
      await skewed.stop();
    }
  });
});
