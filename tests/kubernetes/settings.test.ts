/** What the components of every overlay are told: settings that exist, addresses that lead somewhere, secrets by reference. */
import { CALLS } from "@svc/service-kit/config/calls";
import { holds } from "@svc/service-kit/config/holders";
import { PAIR_TOKENS } from "@svc/service-kit/config/internal-tokens";
import { loadConfig } from "@svc/service-kit/config/load";
import type { Component } from "@svc/service-kit/config/types";
import { VARIABLES, type VariableName } from "@svc/service-kit/config/variables";
import { METRICS } from "@svc/service-kit/metrics/definitions";
import { describe, expect, it } from "vitest";
import { OVERLAYS } from "./support/kubectl.ts";
import { livingEnvironment } from "./support/living.ts";
import { environmentOf, type KubeObject, objectsOf, ownWorkloads, workloadsOf } from "./support/objects.ts";

const named = (name: string) => (object: KubeObject) => object.metadata.name === name;
const isVariable = (name: string): name is VariableName => Object.hasOwn(VARIABLES, name);

interface Service extends KubeObject {
  spec: {
    selector: Record<string, string>;
    ports: { port: number; targetPort: string }[];
    clusterIP?: string;
  };
}

interface Scaler extends KubeObject {
  spec: {
    scaleTargetRef: { kind: string; name: string };
    minReplicas?: number;
    minReplicaCount?: number;
    maxReplicaCount?: number;
    triggers?: { type: string; metadata: Record<string, string> }[];
  };
}

describe.each(OVERLAYS)("the settings of %s", (overlay) => {
  it("are variables of the configuration table, and a component starts with them and the documented secrets", () => {
    const objects = objectsOf(overlay);
    for (const workload of ownWorkloads(objects)) {
      const environment = livingEnvironment(workload, objects);
      const unknown = Object.keys(environment).filter((name) => !isVariable(name));
      expect(unknown, workload.metadata.name).toEqual([]);
      expect(() => loadConfig(workload.metadata.name as Component, environment)).not.toThrow();
      for (const sidecar of workload.spec.template.spec.initContainers ?? [])
        expect(
          [...environmentOf(workload, objects, sidecar).keys()].filter((name) => !isVariable(name)),
        ).toEqual([]);
    }
  });

  it("have every secret by reference, and give it to its holders alone", () => {
    const objects = objectsOf(overlay);
    expect(objects.filter(({ kind }) => kind === "Secret")).toEqual([]);
    // jaild holds none.
    for (const { spec } of workloadsOf(objects))
      for (const { env = [] } of spec.template.spec.initContainers ?? []) expect(env).toEqual([]);
    for (const workload of workloadsOf(objects)) {
      const { name } = workload.metadata;
      for (const [variable, value] of environmentOf(workload, objects)) {
        if (!isVariable(variable)) continue;
        if (VARIABLES[variable].secret) expect(value, `${name} ${variable}`).toBeUndefined();
        if (name !== "redis") expect(holds(name as Component, variable), `${name} ${variable}`).toBe(true);
      }
    }
  });

  it("have a token for each pair of components that speaks, and none for all", () => {
    const objects = objectsOf(overlay);
    for (const { metadata, spec } of ownWorkloads(objects)) {
      const references = (spec.template.spec.containers ?? [])
        .flatMap(({ env = [] }) => env)
        .filter(({ name }) => name.startsWith("SVC_INTERNAL_"))
        .map(({ name, valueFrom }) => [name, valueFrom?.secretKeyRef?.key]);
      const own = Object.entries(PAIR_TOKENS).filter(([, pair]) => pair.includes(metadata.name as Component));
      expect(references.sort(), metadata.name).toEqual(own.map(([name]) => [name, name]).sort());
    }
  });

  it("lead to a Service of the component that is meant, at its port", () => {
    const objects = objectsOf(overlay);
    const services = objects.filter(({ kind }) => kind === "Service") as Service[];
    for (const workload of ownWorkloads(objects)) {
      const environment = livingEnvironment(workload, objects);
      for (const { from, to, by } of CALLS) {
        if (from !== workload.metadata.name || by === undefined || to === "objects") continue;
        if (to === "redis" && overlay !== "small") continue;
        const target = workloadsOf(objects).find(named(to));
        for (const text of (environment[by] ?? "").split(",")) {
          const { hostname, port } = new URL(text.includes("://") ? text : `http://${text}`);
          // Before the Service there may be the name of a pod.
          const [service = "", namespace] = hostname.split(".").slice(-2);
          const found = services.find((one) => named(service)(one) && one.metadata.namespace === namespace);
          expect(found?.spec.selector, `${from} ${by}`).toEqual(target?.spec.selector.matchLabels);
          expect(
            found?.spec.ports.map((one) => String(one.port)),
            `${from} ${by}`,
          ).toEqual([port]);
        }
      }
    }
  });

  it("tell workers each runner that there may be, so that they leave out one that fails, and no other", () => {
    const objects = objectsOf(overlay);
    const workloads = ownWorkloads(objects);
    const runner = workloads.find(named("runner"));
    const worker = workloads.find(named("worker"));
    if (runner === undefined || worker === undefined) throw new Error("there is no runner or no worker");
    const scaler = objects.find(
      ({ kind, metadata }) => kind === "ScaledObject" && metadata.name === "runner",
    );
    const most = (scaler as Scaler | undefined)?.spec.maxReplicaCount ?? runner.spec.replicas ?? 0;
    const advertised = livingEnvironment(runner, objects).SANDBOX_ADVERTISED_URL ?? "";
    const all = Array.from({ length: most }, (_, at) => advertised.replace("runner-0.", `runner-${at}.`));
    const told = livingEnvironment(worker, objects);
    expect(told.SANDBOX_ENDPOINT?.split(",")).toEqual(all);
    expect(told.SANDBOX_RUNNER_URLS).toBeUndefined();
    const headless = objects.find(({ kind, metadata }) => kind === "Service" && metadata.name === "runners");
    expect(runner.spec.serviceName).toBe("runners");
    expect((headless as Service).spec.clusterIP).toBe("None");
    expect(new URL(advertised).hostname).toBe("runner-0.runners.svc-runners");
  });

  it("have as many jobs of each queue in a worker as a runner has slots", () => {
    const objects = objectsOf(overlay);
    const of = (name: string) => {
      const workload = ownWorkloads(objects).find(named(name));
      if (workload === undefined) throw new Error(`there is no ${name}`);
      return livingEnvironment(workload, objects);
    };
    const slots = of("runner").SANDBOX_MAX_CONCURRENT_JOBS;
    expect(of("worker").PYTHON_CONCURRENCY).toBe(slots);
    expect(of("worker").OTHER_CONCURRENCY).toBe(slots);
  });
});

describe.each(["large", "large-tls", "s3-irsa"] as const)("the scalers of %s", (overlay) => {
  const scalersOf = (objects: readonly KubeObject[]) =>
    objects.filter(({ kind }) => ["HorizontalPodAutoscaler", "ScaledObject"].includes(kind)) as Scaler[];

  it("are one for each component, whose number of replicas nothing else sets", () => {
    const objects = objectsOf(overlay);
    const targets = scalersOf(objects).map(({ metadata, spec }) => [
      metadata.namespace,
      spec.scaleTargetRef.kind,
      spec.scaleTargetRef.name,
    ]);
    const workloads = workloadsOf(objects);
    expect(targets.sort()).toEqual(
      workloads.map(({ kind, metadata }) => [metadata.namespace, kind, metadata.name]).sort(),
    );
    expect(workloads.filter(({ spec }) => spec.replicas !== undefined)).toEqual([]);
    for (const { metadata, spec } of scalersOf(objects))
      expect(spec.minReplicas ?? spec.minReplicaCount, metadata.name).toBeGreaterThanOrEqual(2);
  });

  it("ask for a metric with the labels that workers tell, one replica for each runner's slots", () => {
    const objects = objectsOf(overlay);
    const triggers = scalersOf(objects).flatMap(({ spec }) => spec.triggers ?? []);
    expect(triggers).toHaveLength(2);
    const { labels } = METRICS.svc_queue_jobs;
    const runner = ownWorkloads(objects).find(named("runner"));
    for (const { type, metadata } of triggers) {
      expect(type).toBe("prometheus");
      const [, by = "", states = ""] =
        /^sum\(max by \(([\w, ]+)\) \(svc_queue_jobs\{state=~"([\w|]+)"\}\)\)$/.exec(metadata.query ?? "") ??
        [];
      expect(by.split(", ")).toEqual(Object.keys(labels));
      expect(states.split("|").every((state) => (labels.state as readonly string[]).includes(state))).toBe(
        true,
      );
      const slots = runner && livingEnvironment(runner, objects).SANDBOX_MAX_CONCURRENT_JOBS;
      expect(metadata.threshold).toBe(slots);
    }
  });
});

it("s3-irsa gives the file server a role and no key", () => {
  const objects = objectsOf("s3-irsa");
  const account = objects.find(
    ({ kind, metadata }) => kind === "ServiceAccount" && metadata.name === "file-server",
  );
  expect(account?.metadata.annotations?.["eks.amazonaws.com/role-arn"]).toMatch(
    /^arn:aws:iam::\d{12}:role\//,
  );
  const fileServer = ownWorkloads(objects).find(named("file-server"));
  if (fileServer === undefined) throw new Error("there is no file server");
  const names = [...environmentOf(fileServer, objects).keys()];
  expect(names.filter((name) => /^S3_(ACCESS|SECRET|SESSION)/.test(name))).toEqual([]);
  expect(environmentOf(fileServer, objects).get("S3_FORCE_PATH_STYLE")).toBe("false");
});

it("without enableServiceLinks: false, Kubernetes would give components addresses for ports", () => {
  const large = objectsOf("large");
  const fileServer = ownWorkloads(large).find(named("file-server"));
  if (fileServer === undefined) throw new Error("there is no file server");
  // What a kubelet makes of the Service file-server.
  const environment = { ...livingEnvironment(fileServer, large), FILE_SERVER_PORT: "tcp://10.0.0.1:3000" };
  expect(() => loadConfig("file-server", environment)).toThrow("FILE_SERVER_PORT must be a whole number");
});
