/**
 * Where one copy of the system lives: folders, ports, names. They are derived only from options and the documented
 * variables, so every command finds the same copy. Two copies differ in data folder and ports. The cgroup name and the user
 * ids are derived from the data folder.
 */
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { placeOf } from "@svc/service-kit/config/calls";
import type { Component } from "@svc/service-kit/config/types";
import type { Options, Values } from "./options.ts";
import { wholeNumber } from "./options.ts";
import { Problem } from "./problem.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");

/**
 * Number of ids that are reserved for components. jaild's keepers and zygotes use the lowest (IDS_BELOW_BASE in
 * jail/src/master/options.h).
 */
export const COMPONENT_IDS = 16;

export const SERVICES = [
  "api",
  "worker",
  "runner",
  "file-server",
  "tool-call-server",
  "egress-gateway",
] as const;
export type Service = (typeof SERVICES)[number];

/** The variable and the default of each port. */
export const PORTS: Record<Service, readonly [variable: string, port: number]> = {
  api: ["SERVICE_PORT", 3112],
  worker: ["WORKER_HEALTH_PORT", 3113],
  runner: ["PORT", 2000],
  "file-server": ["FILE_SERVER_PORT", 3000],
  "tool-call-server": ["TOOL_CALL_SERVER_PORT", 3033],
  "egress-gateway": ["EGRESS_GATEWAY_PORT", 3190],
};

/** The address that a service listens on. Only the API's can be chosen. */
export function listenHost(service: Service, { SERVICE_HOST }: Environment): string {
  return (service === "api" && SERVICE_HOST) || "127.0.0.1";
}

export const INSTANCE_OPTIONS = {
  "data-dir": {
    value: "DIR",
    doc: "Folder of objects, logs, secrets and sockets (SVC_DATA_DIR; default: data).",
  },
  "port-offset": { value: "N", doc: "Added to every port, so that two copies run side by side." },
  settings: {
    value: "FILE",
    doc: "File of settings (SVC_SETTINGS_FILE; default: svc.env in the data folder, where there is one).",
  },
} as const satisfies Options;

export interface Instance {
  dataDir: string;
  runDir: string;
  logsDir: string;
  /** Where root images are built. */
  packagesDir: string;
  /** The root image of this copy with its manifest: a symbolic link that `./svc up` moves; in a supervisor, the target of that link. */
  image: string;
  ports: Record<Service, number>;
  /** Address of the public API as seen from this machine, without /v1. */
  url: string;
  /** Name of the cgroup under which all jails of this copy live. */
  cgroup: string;
  jobUidBase: number;
  jobGidBase: number;
  redisSocket: string;
  jailSocket: string;
  /** Where jaild makes a folder for the tool socket of each jail. */
  toolDirectory: string;
}

type InstanceValues = Partial<Values<typeof INSTANCE_OPTIONS>>;

/** The data folder that the option or the environment names. */
export function dataFolder(values: Pick<InstanceValues, "data-dir">, env: Environment): string {
  return resolve(values["data-dir"] ?? (env.SVC_DATA_DIR || join(ROOT, "data")));
}

export function resolveInstance(values: InstanceValues, env: Environment): Instance {
  const offset =
    values["port-offset"] === undefined ? 0 : wholeNumber("port-offset", values["port-offset"], 0, 60_000);
  const dataDir = realPath(dataFolder(values, env));
  const digest = createHash("sha256").update(dataDir).digest();
  const uidBase = UID_AREA + digest.readUInt16BE(4) * UIDS_PER_COPY + COMPONENT_IDS;
  const runDir = join(dataDir, "run");
  const ports = portsFrom(env, offset);
  return {
    dataDir,
    runDir,
    logsDir: join(dataDir, "logs"),
    packagesDir: realPath(resolve(env.SANDBOX_PACKAGES_DIRECTORY || join(ROOT, ".pkgs"))),
    image: join(dataDir, "image"),
    ports,
    url: `http://${reachableHost(env.SERVICE_HOST || "127.0.0.1")}:${ports.api}`,
    cgroup: `svc-${digest.toString("hex").slice(0, 8)}`,
    jobUidBase: idFrom(env, "SANDBOX_JOB_UID_BASE", uidBase),
    jobGidBase: idFrom(env, "SANDBOX_JOB_GID_BASE", uidBase),
    redisSocket: socketPath(runDir, "redis/redis.sock"),
    jailSocket: socketPath(runDir, "jaild.sock"),
    toolDirectory: dirname(dirname(socketPath(runDir, "tools/1023/3190.sock"))),
  };
}

/** A service that listens on all addresses is also reachable on loopback. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** The address of a component. All components except the API are reached on loopback. */
export function addressOf(component: Component, { url, ports }: Pick<Instance, "url" | "ports">): string {
  return component === "api" ? url : `http://127.0.0.1:${ports[placeOf(component)]}`;
}

/** Far above the ids of users, of their subordinate ids, and of the first ranges of container hosts. */
const UID_AREA = 200_000_000;
/** The ids of the components, followed by the ids of the slots. */
const UIDS_PER_COPY = COMPONENT_IDS + 1024;
const LEAST_BASE = 1000 + COMPONENT_IDS;

function portsFrom(env: Environment, offset: number): Record<Service, number> {
  const ports = {} as Record<Service, number>;
  const owners = new Map<number, string>();
  for (const service of SERVICES) {
    const [variable, fallback] = PORTS[service];
    const text = env[variable] || String(fallback);
    const port = /^\d{1,5}$/.test(text) ? Number(text) + offset : Number.NaN;
    if (!(port >= 1 && port <= 65_535)) {
      throw new Problem(
        `${variable} is not a port from 1 to 65535${offset ? ` with offset ${offset}` : ""}: ${text}`,
      );
    }
    const other = owners.get(port);
    if (other !== undefined)
      throw new Problem(`${other} and ${variable} are both port ${port}`, "Change one of them.");
    owners.set(port, variable);
    ports[service] = port;
  }
  return ports;
}

function idFrom(env: Environment, variable: string, derived: number): number {
  const text = env[variable];
  if (text === undefined || text === "") return derived;
  const id = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (id < LEAST_BASE || id > 4_000_000_000)
    throw new Problem(`${variable} must be a number from ${LEAST_BASE} to 4000000000`);
  return id;
}

/** The kernel's limit for the path of a unix socket, without the final NUL. */
const MAX_SOCKET_PATH = 107;

function socketPath(runDir: string, name: string): string {
  const path = join(runDir, name);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  throw new Problem(
    `the data folder's path is too long for a unix socket: ${path}`,
    "Choose a shorter one with --data-dir DIR or SVC_DATA_DIR.",
  );
}

/** Resolves symbolic links, also for a path that does not exist yet. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || path === "/") throw error;
    return join(realPath(dirname(path)), basename(path));
  }
}
