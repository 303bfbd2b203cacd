/**
 * The environment of each process: the documented variables that the caller set, the addresses of this copy, and only
 * the secrets that its components need. Nothing else of the caller's environment reaches a component. Pure.
 */
import { join } from "node:path";
import { holds } from "@svc/service-kit/config/holders";
import { VARIABLES, type VariableName } from "@svc/service-kit/config/variables";
import { type Instance, ROOT, type Service } from "./instance.ts";
import { guestFolder } from "./microvm/image.ts";
import { modeOf } from "./mode.ts";
import { givenSecrets, type Secrets } from "./secrets.ts";
import { componentsIn, type ServiceProcess, serviceProcesses, usesMicrovms } from "./topology.ts";

/**
 * Node's compile cache, which halves the start time of a component. It lies beside the code, and a user who may write the code
 * may write it.
 */
export const COMPILE_CACHE = join(ROOT, "node_modules/.cache/compile");

/**
 * Settings that make glibc's malloc return memory that it does not need. Two arenas: one for the main thread, one for all of
 * V8's own threads. With an arena for each, memory that these threads free after compiling stays with them (10 MiB and more
 * in a component that was busy). The thresholds are fixed: a larger block becomes a mapping of its own, which is returned
 * when it is freed. By default malloc raises the thresholds to 32 MiB, and holes remain (2 to 6 MiB in each component).
 */
export const MALLOC = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "262144",
  MALLOC_TRIM_THRESHOLD_: "262144",
};

/** Where the users of the components find the compile cache. They can read it but not write it. */
export function lentCompileCache({ runDir }: Pick<Instance, "runDir">): string {
  return join(runDir, "compile-cache");
}

type Environment = Readonly<Record<string, string | undefined>>;

/** True when the environment names an external Redis. */
export function hasOwnRedis(caller: Environment): boolean {
  return Boolean(caller.REDIS_URL || caller.REDIS_HOST);
}

/**
 * Variables that ./svc sets regardless of the caller: where the parts of this copy are. Ports and folders are the ones
 * that the caller chose. Addresses of other machines are overridden.
 */
function places(instance: Instance, caller: Environment): Record<string, string> {
  const { ports } = instance;
  const local = (name: Service) => `http://127.0.0.1:${ports[name]}`;
  return {
    LOCAL_MODE: String(modeOf(caller).isLocal),
    STORAGE_DIR: caller.STORAGE_DIR || `${instance.dataDir}/objects`,
    SVC_DATA_DIR: instance.dataDir,
    SANDBOX_PACKAGES_DIRECTORY: instance.packagesDir,
    ...(usesMicrovms(caller) ? { LAUNCHER_ROOTFS: guestFolder(instance, caller) } : {}),
    SANDBOX_JAIL_SOCKET: instance.jailSocket,
    SANDBOX_TOOL_DIRECTORY: instance.toolDirectory,
    SANDBOX_JOB_UID_BASE: String(instance.jobUidBase),
    SANDBOX_JOB_GID_BASE: String(instance.jobGidBase),
    SERVICE_PORT: String(ports.api),
    WORKER_HEALTH_PORT: String(ports.worker),
    PORT: String(ports.runner),
    FILE_SERVER_PORT: String(ports["file-server"]),
    TOOL_CALL_SERVER_PORT: String(ports["tool-call-server"]),
    EGRESS_GATEWAY_PORT: String(ports["egress-gateway"]),
    FILE_SERVER_URL: local("file-server"),
    TOOL_CALL_SERVER_URL: local("tool-call-server"),
    EGRESS_GATEWAY_URL: local("egress-gateway"),
    SANDBOX_ENDPOINT: local("runner"),
    // When these are empty, they follow the addresses above.
    EGRESS_GATEWAY_FILE_SERVER_URL: "",
    EGRESS_GATEWAY_TOOL_CALL_SERVER_URL: "",
    SANDBOX_RUNNER_URLS: "",
    SANDBOX_ADVERTISED_URL: "",
    SVC_RUNNER_DISCOVERY: "off",
    SANDBOX_FORWARD_TARGET: `127.0.0.1:${ports["egress-gateway"]}`,
    SANDBOX_ALLOWED_LOCAL_NETWORK_PORT: String(ports["egress-gateway"]),
    // No TLS between components, because all of them are on this machine and use loopback.
    SVC_TLS_CERT_FILE: "",
    SVC_TLS_KEY_FILE: "",
    SVC_TLS_CA_FILE: "",
  };
}

/** Every variable that the components of this copy are given, secrets included. */
export function systemVariables(instance: Instance, secrets: Secrets, caller: Environment): Environment {
  return {
    SERVICE_HOST: "127.0.0.1",
    FILE_SERVER_HOST: "127.0.0.1",
    STORAGE_DRIVER: "fs",
    ...givenSecrets(secrets, serviceProcesses(caller).includes("combined"), caller),
    ...pick(caller),
    ...(hasOwnRedis(caller) ? {} : ownRedis(instance)),
    ...places(instance, caller),
  };
}

/** The Redis of this copy knows no users, so a login of the caller would be refused. */
function ownRedis({ redisSocket }: Instance): Environment {
  return {
    REDIS_URL: `unix://${encodeURI(redisSocket)}`,
    REDIS_USERNAME: undefined,
    REDIS_PASSWORD: undefined,
  };
}

/** Names of address variables that the caller set and ./svc overrides. */
export function overriddenSettings(instance: Instance, caller: Environment): string[] {
  const isAddress = (name: string) =>
    /_URLS?$|_ENDPOINT$|_TARGET$|_SOCKET$|^SANDBOX_TOOL_DIRECTORY$|^SVC_(TLS_|RUNNER_DISCOVERY$)/.test(name);
  return Object.entries(places(instance, caller))
    .filter(([name, value]) => isAddress(name) && Boolean(caller[name]) && caller[name] !== value)
    .map(([name]) => name);
}

export function componentEnvironment(
  process: ServiceProcess,
  instance: Instance,
  secrets: Secrets,
  caller: Environment,
): Record<string, string> {
  const environment: Record<string, string> = {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    LANG: "C.UTF-8",
    // The users of components have no entry in /etc/passwd and no home. Libraries that look for a home find nothing.
    HOME: "/nonexistent",
    NODE_COMPILE_CACHE: lentCompileCache(instance),
    ...MALLOC,
  };
  const isHeld = (name: string) =>
    componentsIn(process).some((component) => holds(component, name as VariableName));
  for (const [name, value] of Object.entries(systemVariables(instance, secrets, caller))) {
    if (value !== undefined && isHeld(name)) environment[name] = value;
  }
  // The runner has the image that jaild has, not the folder of all images.
  if (isHeld("SANDBOX_PACKAGES_DIRECTORY")) environment.SANDBOX_PACKAGES_DIRECTORY = instance.image;
  return environment;
}

/** The caller's values of the documented variables. Includes unknown `SVC_` names, so that the components can refuse them by name. */
export function pick(caller: Environment): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(caller)) {
    if (value && (Object.hasOwn(VARIABLES, name) || name.startsWith("SVC_"))) picked[name] = value;
  }
  return picked;
}
