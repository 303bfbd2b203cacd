/**
 * Components as processes without a supervisor, started in orders that no supervisor would choose: each waits for what it needs,
 * alive and not ready, and begins by itself. None ends.
 */
import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Component, componentsOf } from "@svc/cli/components";
import type { Instance, Service } from "@svc/cli/instance";
import { loadSecrets } from "@svc/cli/secrets";
import { Child } from "@svc/cli/supervisor/child";
import { makeFolders } from "@svc/cli/supervisor/ground";
import type { ComponentName } from "@svc/cli/topology";
import { Api } from "@svc/test-kit/system/api";
import { holdNamespaces, leftovers, takeBaseline } from "@svc/test-kit/system/leftovers";
import { until } from "@svc/test-kit/system/processes";
import { expect, test } from "vitest";
import { isLive, reasonsOf, SERVICES, untilAllReady } from "./support/readiness.ts";
import { privateFolder } from "./support/svc.ts";

const WITHIN_MS = 60_000;
const STOP_MS = 20_000;

const isService = (name: ComponentName): name is Service => (SERVICES as ComponentName[]).includes(name);

class Started {
  readonly instance: Instance;
  readonly died: string[] = [];
  readonly #components: readonly Component[];
  readonly #children: Child[] = [];

  constructor(instance: Instance) {
    this.instance = instance;
    makeFolders(instance);
    for (const folder of [join(instance.dataDir, "redis"), dirname(instance.redisSocket)])
      mkdirSync(folder, { recursive: true });
    symlinkSync(realpathSync(join(instance.packagesDir, "current")), instance.image);
    const secrets = loadSecrets(instance.dataDir);
    this.#components = componentsOf({
      instance,
      secrets,
      caller: { SVC_TOPOLOGY: "separate" },
      view: undefined,
    });
  }

  start(name: ComponentName): void {
    const component = this.#components.find((candidate) => candidate.name === name);
    if (component === undefined) throw new Error(`there is no ${name}`);
    const events = {
      changed: () => undefined,
      died: (_name: string, how: string) => void this.died.push(`${name} died: ${how}`),
    };
    const child = new Child(component, this.instance, events);
    this.#children.push(child);
    child.start();
  }

  async stop(): Promise<void> {
    for (const child of this.#children.filter(({ component }) => isService(component.name)))
      await child.stop(STOP_MS);
    for (const child of this.#children) await child.stop(STOP_MS);
  }
}

const ORDERS: Record<string, readonly ComponentName[]> = {
  "each before all that it needs": [
    "api",
    "worker",
    "runner",
    "egress-gateway",
    "tool-call-server",
    "file-server",
    "jaild",
    "redis",
  ],
  "those that others need in between": [
    "worker",
    "egress-gateway",
    "jaild",
    "tool-call-server",
    "redis",
    "api",
    "runner",
    "file-server",
  ],
};

test.each(Object.keys(ORDERS))("%s: all get ready, and programs run", async (order) => {
  const { instance, remove } = await privateFolder();
  const baseline = takeBaseline();
  const started = new Started(instance);
  const begun: ComponentName[] = [];
  try {
    for (const name of ORDERS[order] as ComponentName[]) {
      started.start(name);
      begun.push(name);
      if (!isService(name)) continue;
      await until(
        () => isLive(name, started),
        WITHIN_MS,
        () => started.died,
      );
      // Whatever it is that it waits for.
      if (!begun.includes("redis") && name !== "runner")
        expect(await reasonsOf(name, started), name).toHaveProperty("redis");
      if (!begun.includes("jaild") && name === "runner")
        expect(await reasonsOf(name, started), name).toHaveProperty("jail");
    }
    await untilAllReady(started);
    const api = new Api(`${instance.url}/v1`);
    const answer = await api.exec({
      lang: "bash",
      code: "cat in.txt",
      files: [await api.stage("in.txt", "read")],
    });
    expect(answer.stdout).toBe("read");
    expect(started.died).toEqual([]);
  } finally {
    const namespaces = holdNamespaces(instance, baseline);
    await started.stop();
    remove();
    expect(leftovers(instance, baseline, namespaces.names)).toEqual([]);
    namespaces.release();
  }
});
