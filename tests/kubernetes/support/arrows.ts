/** The arrows that the policies of an overlay let through, and those of the architecture. */
import { CALLS, LISTENS, type Party, type Placed } from "@svc/service-kit/config/calls";

import { VARIABLES } from "@svc/service-kit/config/variables";
import type { Overlay } from "./kubectl.ts";
import { type KubeObject, workloadsOf } from "./objects.ts";
import { type End, type Policy, reaches } from "./policies.ts";

const REDIS_PORT = 6379;
const OBJECTS_PORT = 443;
const NAMES_PORT = 53;
/** What is tried of pods and addresses that must reach nothing, or be reached by nobody. */
const OTHER_PORTS = [22, 80, 8080];
const COMPONENTS = Object.keys(LISTENS) as Placed[];
const COMPONENT_PORTS = COMPONENTS.map((name) => VARIABLES[LISTENS[name].port].fallback);

const pod = (namespace: string, labels: Record<string, string> = {}): End => ({
  pod: { namespace, labels },
  address: "10.1.2.3",
});

/** Everybody of the picture: the pods of the overlay, the outside, and pods that nobody has planned. */
function endsOf(objects: readonly KubeObject[], hasOwnRedis: boolean): Record<string, End> {
  const own = workloadsOf(objects).map(({ metadata, spec }): [string, End] => [
    metadata.name,
    pod(metadata.namespace, spec.template.metadata.labels),
  ]);
  return {
    clients: pod("ingress"),
    monitoring: pod("monitoring"),
    objects: { address: "198.51.100.7" },
    ...(hasOwnRedis ? {} : { redis: { address: "192.168.7.7" } }),
    names: pod("kube-system", { "k8s-app": "kube-dns" }),
    metadata: { address: "169.254.169.254" },
    internet: { address: "203.0.113.9" },
    "unplanned in svc-control": pod("svc-control"),
    "unplanned in svc-runners": pod("svc-runners"),
    ...Object.fromEntries(own),
  };
}

/** At which ports an end may be there at all. */
function portsOf(name: string, hasOwnRedis: boolean): number[] {
  if (name === "objects") return [OBJECTS_PORT];
  if (name === "redis") return hasOwnRedis ? [REDIS_PORT, ...COMPONENT_PORTS, ...OTHER_PORTS] : [REDIS_PORT];
  if (name === "names") return [NAMES_PORT];
  // Redis and objects may be at any address but a link-local one, unless they are in the cluster.
  const anywhere = hasOwnRedis ? [REDIS_PORT, OBJECTS_PORT] : [];
  if (["internet", "clients", "monitoring"].includes(name))
    return [...COMPONENT_PORTS, ...anywhere, ...OTHER_PORTS];
  return [...COMPONENT_PORTS, REDIS_PORT, OBJECTS_PORT, NAMES_PORT, ...OTHER_PORTS];
}

/** Who is in a namespace of ours; what others do with each other is the cluster's business. */
const ours = (hasOwnRedis: boolean): string[] => [
  ...COMPONENTS,
  ...(hasOwnRedis ? ["redis"] : []),
  "unplanned in svc-control",
  "unplanned in svc-runners",
];

/** `from > to:port`, sorted. Clients and monitoring stand for all that is outside and begins. */
export function arrowsOf(
  objects: readonly KubeObject[],
  policies: readonly Policy[],
  overlay: Overlay,
): string[] {
  const hasOwnRedis = overlay === "small";
  const ends = Object.entries(endsOf(objects, hasOwnRedis));
  const inside = ours(hasOwnRedis);
  const begins = (name: string) => inside.includes(name) || ["clients", "monitoring"].includes(name);
  const arrows: string[] = [];
  for (const [from, source] of ends)
    for (const [to, target] of ends)
      for (const port of portsOf(to, hasOwnRedis)) {
        const isOurs = inside.includes(from) || inside.includes(to);
        if (isOurs && begins(from) && reaches(policies, source, target, port))
          arrows.push(`${from} > ${to}:${port}`);
      }
  return arrows.sort();
}

/** The arrows of the architecture, each at the port that its end listens on, and the name server of the cluster. */
export function plannedArrows(overlay: Overlay): string[] {
  const hasBucket = overlay !== "small";
  const port = (party: Party) => {
    if (party === "redis") return REDIS_PORT;
    if (party === "objects") return OBJECTS_PORT;
    return VARIABLES[LISTENS[party as Placed].port].fallback;
  };
  const planned = CALLS.filter(({ to }) => to !== "objects" || hasBucket);
  return [
    ...planned.map(({ from, to }) => `${from} > ${to}:${port(to)}`),
    ...ours(overlay === "small").map((name) => `${name} > names:${NAMES_PORT}`),
  ].sort();
}
