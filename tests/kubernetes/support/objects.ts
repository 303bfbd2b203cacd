/** The objects of an overlay, and the parts of them that the tests look at. schemas.test.ts holds their form. */
import { inject } from "vitest";
import { parseAllDocuments } from "yaml";
import type { Overlay } from "./kubectl.ts";

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Labels; annotations?: Labels };
  automountServiceAccountToken?: boolean;
  spec?: unknown;
  data?: Labels;
}
export type Labels = Record<string, string>;

export interface Env {
  name: string;
  value?: string;
  valueFrom?: {
    secretKeyRef?: { name: string; key: string; optional?: boolean };
    fieldRef?: { fieldPath: string };
  };
}

export interface Probe {
  httpGet?: { path: string; port: string | number; scheme?: string };
  tcpSocket?: { port: string | number };
  exec?: { command: string[] };
  periodSeconds?: number;
  timeoutSeconds?: number;
  failureThreshold?: number;
}

export interface Container {
  name: string;
  image: string;
  args?: string[];
  restartPolicy?: string;
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
  env?: Env[];
  envFrom?: { configMapRef?: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  lifecycle?: { preStop?: { sleep?: { seconds: number } } };
  resources?: { requests?: Labels; limits?: Labels };
  securityContext?: Record<string, unknown>;
}

export interface PodSpec {
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  terminationGracePeriodSeconds?: number;
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  securityContext?: Record<string, unknown>;
  topologySpreadConstraints?: { topologyKey: string; labelSelector: { matchLabels: Labels } }[];
  containers: Container[];
  initContainers?: Container[];
  volumes?: Record<string, unknown>[];
}

export interface Workload extends KubeObject {
  metadata: KubeObject["metadata"] & { namespace: string };
  spec: {
    replicas?: number;
    serviceName?: string;
    selector: { matchLabels: Labels };
    template: { metadata: { labels: Labels }; spec: PodSpec };
  };
}

export function objectsOf(overlay: Overlay): KubeObject[] {
  const text = inject("rendered")[overlay];
  if (text === undefined) throw new Error(`${overlay} was not rendered`);
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "Pod"];

/** Everything that makes pods. */
export function workloadsOf(objects: readonly KubeObject[]): Workload[] {
  return objects.filter(({ kind }) => KINDS.includes(kind)) as Workload[];
}

/** Those of svc itself: all but the Redis of `small`. */
export const ownWorkloads = (objects: readonly KubeObject[]) =>
  workloadsOf(objects).filter(({ metadata }) => metadata.labels?.["app.kubernetes.io/name"] === "svc");

/** The component itself. */
export function mainContainer({ metadata, spec }: Workload): Container {
  const [first, ...others] = spec.template.spec.containers;
  if (first === undefined || others.length > 0) throw new Error(`${metadata.name} has not one container`);
  return first;
}

/** With the sidecars. */
export const containersOf = ({ spec }: Workload): Container[] => [
  ...spec.template.spec.containers,
  ...(spec.template.spec.initContainers ?? []),
];

/** The environment of a container as Kubernetes makes it, with its ConfigMaps; secrets and fields as undefined. */
export function environmentOf(
  workload: Workload,
  objects: readonly KubeObject[],
  container = mainContainer(workload),
): Map<string, string | undefined> {
  const variables = new Map<string, string | undefined>();
  for (const { configMapRef } of container.envFrom ?? []) {
    const map = objects.find(
      ({ kind, metadata }) =>
        kind === "ConfigMap" &&
        metadata.name === configMapRef?.name &&
        metadata.namespace === workload.metadata.namespace,
    );
    if (map === undefined) throw new Error(`${workload.metadata.name} has a ConfigMap that is not there`);
    for (const [name, value] of Object.entries(map.data ?? {})) variables.set(name, value);
  }
  for (const { name, value } of container.env ?? []) variables.set(name, value);
  return variables;
}
