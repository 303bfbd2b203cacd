/** What every pod of every overlay has: rights, probes, limits, an orderly end, a place beside the others. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { memoryOfJails } from "@svc/cli/capacity";
import { ROOT } from "@svc/cli/instance";
import { LISTENS, type Placed } from "@svc/service-kit/config/calls";

import { VARIABLES } from "@svc/service-kit/config/variables";
import { ROUTES } from "@svc/test-kit/system/health-routes";
import { describe, expect, it } from "vitest";
import { hasTls, OVERLAYS } from "./support/kubectl.ts";
import {
  containersOf,
  environmentOf,
  type KubeObject,
  mainContainer,
  objectsOf,
  ownWorkloads,
  type Probe,
  workloadsOf,
} from "./support/objects.ts";
import { refusedByRestricted } from "./support/pod-security.ts";

/** After SHUTDOWN_GRACE_MS a component takes 2 s to give up, and 2 s for its last spans. */
const AFTER_GRACE_S = 4;
/** A slot's file system at /dev/shm, which no setting changes. */
const SHM_BYTES = 64 * 2 ** 20;

interface Selecting extends KubeObject {
  spec: { selector: { matchLabels?: Record<string, string> }; maxUnavailable?: number };
}

const secondsOf = ({ periodSeconds = 10, failureThreshold = 3 }: Probe) => periodSeconds * failureThreshold;
const bytesOf = (text: string) => Number(/^(\d+)Gi$/.exec(text)?.[1]) * 2 ** 30;

function runnerOf(objects: readonly KubeObject[]) {
  const runner = ownWorkloads(objects).find(({ metadata }) => metadata.name === "runner");
  if (runner === undefined) throw new Error("there is no runner");
  return runner;
}

describe.each(OVERLAYS)("each pod of %s", (overlay) => {
  it("is one of the six components, and in `small` of Redis", () => {
    const names = workloadsOf(objectsOf(overlay)).map(({ metadata }) => metadata.name);
    const expected = [...Object.keys(ROUTES), ...(overlay === "small" ? ["redis"] : [])];
    expect(names.sort()).toEqual(expected.sort());
  });

  it("passes the level of its namespace; only the runner's has jaild, which is privileged", () => {
    const objects = objectsOf(overlay);
    const levels = objects.filter(({ kind }) => kind === "Namespace");
    const enforced = levels.map(({ metadata }) => [
      metadata.name,
      metadata.labels?.["pod-security.kubernetes.io/enforce"],
    ]);
    expect(Object.fromEntries(enforced)).toEqual({
      "svc-control": "restricted",
      "svc-runners": "privileged",
    });
    for (const { metadata, spec } of workloadsOf(objects)) {
      const refused = refusedByRestricted(spec.template.spec);
      if (metadata.name !== "runner") expect(refused, metadata.name).toEqual([]);
      expect(metadata.namespace).toBe(metadata.name === "runner" ? "svc-runners" : "svc-control");
    }
  });

  it("has no right of jaild beyond those that docs/kubernetes.md gives a reason for, and none of the runner", () => {
    const runner = workloadsOf(objectsOf(overlay)).find(({ metadata }) => metadata.name === "runner");
    const page = readFileSync(join(ROOT, "docs/kubernetes.md"), "utf8");
    const [, section = ""] = /^## What each permission is for\n([\s\S]*?)^## /m.exec(page) ?? [];
    const reasons = [...section.matchAll(/^\| (jaild: [^|]+?) \|/gm)].map(([, name]) => name);
    expect(runner && refusedByRestricted(runner.spec.template.spec).sort()).toEqual(reasons.sort());
  });

  it("has no token of the cluster, no variables of Services, and a root that it cannot write", () => {
    const objects = objectsOf(overlay);
    for (const workload of workloadsOf(objects)) {
      const { spec } = workload.spec.template;
      expect(spec.automountServiceAccountToken, workload.metadata.name).toBe(false);
      expect(spec.enableServiceLinks, workload.metadata.name).toBe(false);
      for (const { name, securityContext } of containersOf(workload))
        expect(securityContext?.readOnlyRootFilesystem, name).toBe(true);
    }
    const accounts = objects.filter(({ kind }) => kind === "ServiceAccount");
    expect(accounts.map(({ metadata }) => metadata.name).sort()).toEqual(Object.keys(ROUTES).sort());
    expect(accounts.every(({ automountServiceAccountToken }) => automountServiceAccountToken === false)).toBe(
      true,
    );
    expect(objects.filter(({ kind }) => /^(Cluster)?Role/.test(kind))).toEqual([]);
  });

  it("has probes at the routes of its component, with time for a start and for checks", () => {
    for (const workload of ownWorkloads(objectsOf(overlay))) {
      const name = workload.metadata.name as Placed;
      const { startupProbe, livenessProbe, readinessProbe, ports } = mainContainer(workload);
      const [alive, ready] = ROUTES[name];
      // The API leaves TLS to the Ingress.
      const at = { port: "http", ...(hasTls(overlay) && name !== "api" ? { scheme: "HTTPS" } : {}) };
      expect(startupProbe?.httpGet, name).toEqual({ path: alive, ...at });
      expect(livenessProbe?.httpGet, name).toEqual({ path: alive, ...at });
      expect(readinessProbe?.httpGet, name).toEqual({ path: ready, ...at });
      expect(ports, name).toEqual([{ name: "http", containerPort: VARIABLES[LISTENS[name].port].fallback }]);
      expect(secondsOf(startupProbe ?? {}), name).toBeGreaterThanOrEqual(60);
      // packages/service-kit/src/health/readiness.ts gives checks 7 s.
      expect(readinessProbe?.timeoutSeconds, name).toBeGreaterThan(7);
    }
  });

  it("has time to finish what it accepted", () => {
    const objects = objectsOf(overlay);
    for (const workload of ownWorkloads(objects)) {
      const { name } = workload.metadata;
      const { terminationGracePeriodSeconds = 30 } = workload.spec.template.spec;
      const sleep = mainContainer(workload).lifecycle?.preStop?.sleep?.seconds ?? 0;
      const graceMs = Number(environmentOf(workload, objects).get("SHUTDOWN_GRACE_MS"));
      // A run of the default limit ends within it.
      expect(graceMs, name).toBeGreaterThan(VARIABLES.SANDBOX_RUN_TIMEOUT.fallback);
      expect(terminationGracePeriodSeconds, name).toBeGreaterThanOrEqual(
        sleep + graceMs / 1000 + AFTER_GRACE_S,
      );
      // Nobody calls the worker but its probes.
      expect(sleep > 0, name).toBe(name !== "worker");
    }
  });

  it("has limits, a disruption budget of its own, and replicas spread over nodes", () => {
    const objects = objectsOf(overlay);
    const budgets = objects.filter(({ kind }) => kind === "PodDisruptionBudget") as Selecting[];
    for (const { metadata, spec } of workloadsOf(objects)) {
      for (const { name, resources } of [
        ...spec.template.spec.containers,
        ...(spec.template.spec.initContainers ?? []),
      ]) {
        expect(Object.keys(resources?.requests ?? {}).sort(), name).toEqual(["cpu", "memory"]);
        expect(resources?.limits?.memory, name).toBeDefined();
      }
      const own = budgets.filter((budget) => budget.metadata.name === metadata.name);
      expect(own.map((budget) => [budget.metadata.namespace, budget.spec.selector.matchLabels])).toEqual([
        [metadata.namespace, spec.selector.matchLabels],
      ]);
      // More would let a drain take all; a number of those that stay would keep a single replica's node from being drained.
      expect(own[0]?.spec.maxUnavailable, metadata.name).toBe(1);
      const spread = spec.template.spec.topologySpreadConstraints ?? [];
      expect(spread.map(({ topologyKey }) => topologyKey)).toContain("kubernetes.io/hostname");
      for (const { labelSelector } of spread)
        expect(labelSelector.matchLabels, metadata.name).toEqual(spec.selector.matchLabels);
    }
    expect(budgets).toHaveLength(workloadsOf(objects).length);
  });

  it("of the runner has jaild beside it, from before its start until after its end", () => {
    const runner = runnerOf(objectsOf(overlay));
    const [jaild, ...others] = runner.spec.template.spec.initContainers ?? [];
    expect(others).toEqual([]);
    expect(jaild?.name).toBe("jaild");
    expect(jaild?.restartPolicy).toBe("Always");
    // The runner starts when this one has passed.
    expect(jaild?.startupProbe?.exec).toEqual(jaild?.livenessProbe?.exec);
    const { image, volumeMounts = [], securityContext } = mainContainer(runner);
    expect(jaild?.image).toBe(image);
    const shared = volumeMounts.find(({ name }) => name === "run");
    expect(shared?.mountPath).toBe(dirname(VARIABLES.SANDBOX_JAIL_SOCKET.fallback));
    expect(shared?.mountPath).toBe(dirname(VARIABLES.SANDBOX_TOOL_DIRECTORY.fallback));
    expect(jaild?.volumeMounts).toContainEqual(shared);
    // The user to whom jaild gives its socket.
    expect(securityContext?.runAsUser).toBe(VARIABLES.SANDBOX_JOB_UID_BASE.fallback - 1);
  });

  it("of the runner has memory for all its slots", () => {
    const objects = objectsOf(overlay);
    const runner = runnerOf(objects);
    const [jaild] = runner.spec.template.spec.initContainers ?? [];
    const { SANDBOX_RUN_MEMORY_LIMIT, SANDBOX_WORKSPACE_MAX_BYTES, SANDBOX_TMP_MAX_BYTES } = VARIABLES;
    const slot =
      SANDBOX_RUN_MEMORY_LIMIT.fallback +
      SANDBOX_WORKSPACE_MAX_BYTES.fallback +
      SANDBOX_TMP_MAX_BYTES.fallback +
      SHM_BYTES;
    const own = environmentOf(runner, objects, jaild);
    expect(own.get("SANDBOX_MAX_CONCURRENT_JOBS")).toBe(
      environmentOf(runner, objects).get("SANDBOX_MAX_CONCURRENT_JOBS"),
    );
    const slots = Number(own.get("SANDBOX_MAX_CONCURRENT_JOBS"));
    const { requests, limits } = jaild?.resources ?? {};
    // jaild takes its container's limit for the memory of the machine.
    expect(memoryOfJails(bytesOf(limits?.memory ?? ""))).toBeGreaterThanOrEqual(slots * slot);
    expect(requests?.memory).toBe(limits?.memory);
  });

  it("is updated in the order of docs/operate.md", () => {
    const stages = workloadsOf(objectsOf(overlay)).map(({ metadata }) => [
      metadata.name,
      metadata.labels?.["update-stage"],
    ]);
    expect(Object.fromEntries(stages)).toEqual({
      ...(overlay === "small" ? { redis: "0" } : {}),
      "file-server": "1",
      "tool-call-server": "1",
      "egress-gateway": "2",
      runner: "3",
      worker: "4",
      api: "5",
    });
  });
});

it("the check of the level refuses what takes one line away from a pod that passes", () => {
  const api = workloadsOf(objectsOf("large")).find(({ metadata }) => metadata.name === "api");
  const pod = api?.spec.template.spec;
  if (pod === undefined) throw new Error("there is no API");
  for (const name of Object.keys(pod.securityContext ?? {}).filter(
    (key) => !/fsGroup|runAs(User|Group)/.test(key),
  )) {
    const copy = structuredClone(pod);
    delete copy.securityContext?.[name];
    expect(refusedByRestricted(copy), name).toHaveLength(1);
  }
  for (const name of ["allowPrivilegeEscalation", "capabilities"]) {
    const copy = structuredClone(pod);
    delete copy.containers[0]?.securityContext?.[name];
    expect(refusedByRestricted(copy), name).toHaveLength(1);
  }
  const onHost = {
    ...structuredClone(pod),
    hostNetwork: true,
    volumes: [{ name: "x", hostPath: { path: "/" } }],
  };
  expect(refusedByRestricted(onHost)).toEqual(["hostNetwork", "volume hostPath"]);
});
