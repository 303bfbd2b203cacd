/** What network policies let through, by the rules of networking.k8s.io/v1: a small evaluator, which refuses what it does not know. */
import { BlockList } from "node:net";
import type { KubeObject, Labels } from "./objects.ts";

/** A pod, or an address outside of the cluster. */
export interface End {
  /** Undefined: no pod, so no policy is about it. */
  pod?: { namespace: string; labels: Labels };
  address: string;
}

interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

export interface PolicyPeer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

export interface Rule {
  ports?: { protocol?: string; port?: number | string; endPort?: number }[];
  from?: PolicyPeer[];
  to?: PolicyPeer[];
}

export interface Policy extends KubeObject {
  metadata: KubeObject["metadata"] & { namespace: string };
  spec: {
    podSelector: Selector;
    policyTypes: ("Ingress" | "Egress")[];
    ingress?: Rule[];
    egress?: Rule[];
  };
}

export const policiesOf = (objects: readonly KubeObject[]) =>
  objects.filter(({ kind }) => kind === "NetworkPolicy") as Policy[];

function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  for (const { operator } of matchExpressions)
    if (operator !== "In") throw new Error(`the operator ${operator} is not known here`);
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, values = [] }) => values.includes(labels[key] ?? ""))
  );
}

function inBlock({ cidr, except = [] }: NonNullable<PolicyPeer["ipBlock"]>, address: string): boolean {
  const within = (block: string) => {
    const [network = "", length = ""] = block.split("/");
    const list = new BlockList();
    list.addSubnet(network, Number(length), "ipv4");
    return list.check(address, "ipv4");
  };
  return within(cidr) && !except.some(within);
}

/** Some network plug-ins match blocks with pods too, so a block counts for them here. */
function isPeer({ podSelector, namespaceSelector, ipBlock }: PolicyPeer, end: End, own: string): boolean {
  if (ipBlock !== undefined) return inBlock(ipBlock, end.address);
  if (end.pod === undefined) return false;
  const { namespace, labels } = end.pod;
  const inNamespace =
    namespaceSelector === undefined
      ? namespace === own
      : selects(namespaceSelector, { "kubernetes.io/metadata.name": namespace });
  return inNamespace && selects(podSelector ?? {}, labels);
}

function letsThrough(
  rule: Rule,
  peers: PolicyPeer[] | undefined,
  other: End,
  own: string,
  port: number,
): boolean {
  const ports = rule.ports?.filter(({ protocol = "TCP" }) => protocol === "TCP");
  for (const entry of ports ?? [])
    if (typeof entry.port !== "number" || entry.endPort !== undefined)
      throw new Error("ports are numbers here, each by itself");
  const isPort = ports === undefined || ports.some((entry) => entry.port === port);
  return isPort && (peers === undefined || peers.some((peer) => isPeer(peer, other, own)));
}

function oneWay(
  policies: readonly Policy[],
  way: "Ingress" | "Egress",
  end: End,
  other: End,
  port: number,
): boolean {
  const { pod } = end;
  if (pod === undefined) return true;
  const about = policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.namespace &&
      spec.policyTypes.includes(way) &&
      selects(spec.podSelector, pod.labels),
  );
  if (about.length === 0) return true;
  return about.some(({ spec }) =>
    way === "Ingress"
      ? spec.ingress?.some((rule) => letsThrough(rule, rule.from, other, pod.namespace, port))
      : spec.egress?.some((rule) => letsThrough(rule, rule.to, other, pod.namespace, port)),
  );
}

/** Whether a TCP connection comes about. */
export function reaches(policies: readonly Policy[], from: End, to: End, port: number): boolean {
  return oneWay(policies, "Egress", from, to, port) && oneWay(policies, "Ingress", to, from, port);
}
