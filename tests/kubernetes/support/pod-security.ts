/**
 * The level "restricted" of the Pod Security Standards of Kubernetes 1.35, as its documentation lists the controls: what of a pod
 * that level refuses.
 */
import type { Container, PodSpec } from "./objects.ts";

const VOLUMES = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "persistentVolumeClaim",
  "projected",
  "secret",
];

interface SecurityContext {
  privileged?: boolean;
  allowPrivilegeEscalation?: boolean;
  runAsNonRoot?: boolean;
  runAsUser?: number;
  seccompProfile?: { type: string };
  appArmorProfile?: { type: string };
  procMount?: string;
  sysctls?: unknown[];
  capabilities?: { add?: string[]; drop?: string[] };
}

export function refusedByRestricted(pod: PodSpec): string[] {
  const own = (pod.securityContext ?? {}) as SecurityContext;
  const host = (["hostNetwork", "hostPID", "hostIPC"] as const).filter((name) => pod[name]);
  const volumes = (pod.volumes ?? []).flatMap((volume) =>
    Object.keys(volume).filter((key) => key !== "name" && !VOLUMES.includes(key)),
  );
  const containers = [...pod.containers, ...(pod.initContainers ?? [])];
  return [
    ...host,
    ...volumes.map((kind) => `volume ${kind}`),
    ...((own.sysctls ?? []).length > 0 ? ["sysctls"] : []),
    ...containers.flatMap((container) => refusedOf(container, own)),
  ];
}

function refusedOf({ name, securityContext, ports = [] }: Container, pod: SecurityContext): string[] {
  const own = (securityContext ?? {}) as SecurityContext;
  const { add = [], drop = [] } = own.capabilities ?? {};
  const seccomp = (own.seccompProfile ?? pod.seccompProfile)?.type;
  const appArmor = (own.appArmorProfile ?? pod.appArmorProfile)?.type;
  const user = own.runAsUser ?? pod.runAsUser;
  const controls: Record<string, boolean> = {
    privileged: own.privileged === true,
    allowPrivilegeEscalation: own.allowPrivilegeEscalation !== false,
    "capabilities are kept": !drop.includes("ALL"),
    "capabilities are added": add.some((name) => name !== "NET_BIND_SERVICE"),
    runAsNonRoot: (own.runAsNonRoot ?? pod.runAsNonRoot) !== true,
    "runs as root": user === 0,
    "no seccomp profile": seccomp !== "RuntimeDefault" && seccomp !== "Localhost",
    "no AppArmor profile": appArmor === "Unconfined",
    procMount: (own.procMount ?? "Default") !== "Default",
    hostPort: ports.some((port) => "hostPort" in port),
  };
  return Object.keys(controls)
    .filter((control) => controls[control])
    .map((control) => `${name}: ${control}`);
}
