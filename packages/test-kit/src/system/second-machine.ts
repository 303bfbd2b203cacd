/**
 * A second machine of a fleet: jaild, a runner and a worker of its own beside a running system, whose API, gateway, storage and Redis
 * they use. Neither worker knows the other's runner. Needs root. Its owner ends it, before the system.
 */
import { chmodSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Component, componentsOf } from "@svc/cli/components";
import { type Instance, resolveInstance } from "@svc/cli/instance";
import { loadSecrets } from "@svc/cli/secrets";
import { Child } from "@svc/cli/supervisor/child";
import { makeFolders } from "@svc/cli/supervisor/ground";
import { freePort } from "./free-ports.ts";
import { holdNamespaces, leftovers, takeBaseline } from "./leftovers.ts";
import { until } from "./processes.ts";
import type { System } from "./system.ts";

const READY_MS = 60_000;
const STOP_MS = 20_000;
const OWN = ["jaild", "runner", "worker"] as const;

type Environment = Readonly<Record<string, string>>;

export interface SecondMachine {
  /** With the machine's own folders and control group, and with the ports and the image that it shares. */
  instance: Instance;
  /** Ends it in order, and answers what it left on the machine and what had died before: an empty list when all is well. */
  stop: () => Promise<string[]>;
}

export interface SecondMachineOptions {
  /** The variables that the system was started with, and what is different here. */
  env: Environment;
  /** What is different for one component alone. */
  own?: Partial<Record<(typeof OWN)[number], Environment>>;
}

export async function startSecondMachine(
  system: Pick<System, "instance">,
  { env, own = {} }: SecondMachineOptions,
): Promise<SecondMachine> {
  const baseline = takeBaseline();
  const instance = await instanceBeside(system.instance);
  const secrets = loadSecrets(system.instance.dataDir);
  const REDIS_URL = `unix://${system.instance.redisSocket}`;
  const died: string[] = [];
  const events = {
    changed: () => undefined,
    died: (name: string, how: string) => void died.push(`${name} died: ${how}`),
  };
  const children: Child[] = [];
  const stop = async () => {
    const namespaces = holdNamespaces(instance, baseline);
    for (const child of children.toReversed()) {
      if (!(await child.stop(STOP_MS))) died.push(`${child.component.name} did not end in time`);
    }
    rmSync(instance.dataDir, { recursive: true, force: true });
    const left = leftovers(instance, baseline, namespaces.names);
    namespaces.release();
    return [...died, ...left];
  };
  try {
    for (const name of OWN) {
      const caller = { ...env, SVC_TOPOLOGY: "separate", ...own[name], REDIS_URL };
      const component = componentsOf({ instance, secrets, caller, view: undefined }).find(
        (candidate) => candidate.name === name,
      ) as Component;
      const child = new Child(component, instance, events);
      children.push(child);
      child.start();
      await until(
        async () => (await component.probe()) === undefined,
        READY_MS,
        () => died,
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { instance, stop };
}

/** Like the system's, with folders, control group, user ids and two ports of its own. */
async function instanceBeside(first: Instance): Promise<Instance> {
  const SVC_DATA_DIR = realpathSync(mkdtempSync(join(tmpdir(), "svc-machine-")));
  chmodSync(SVC_DATA_DIR, 0o711);
  const { image, ports, ...own } = resolveInstance({}, { SVC_DATA_DIR });
  const instance = {
    ...own,
    image: first.image,
    ports: { ...first.ports, runner: await freePort(), worker: await freePort() },
  };
  makeFolders(instance);
  return instance;
}
