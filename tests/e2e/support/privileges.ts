/**
 * What every process of a running copy may do, as data: one row for each kind of process. privileges.test.ts compares it
 * with /proc; docs/threat-model.md shows it. A process of no row, or with more than its row says, fails the test.
 */

import { serviceProcesses } from "@svc/cli/topology";
import type { Unprivileged } from "@svc/cli/users";

export interface Row {
  /** `root`, a process's own user, jaild's own below root, or the one of a slot; the last two in user namespaces. */
  user: "root" | Unprivileged | "jaild" | "slot";
  /** Capabilities in force and those that can be had, as in /proc/PID/status without leading zeros. */
  effective: string;
  bounding: string;
  noNewPrivileges: boolean;
  /** Whether a filter of system calls is in force. */
  filtered: boolean;
  /** When memory runs short the highest is ended first; absent where it does not matter. */
  oomScore?: number;
  /** Kinds of open descriptors; a log is always the own one. */
  descriptors: readonly string[];
  /** What an attacker inside the process reaches. */
  reaches: string;
}

const NONE = { effective: "0", bounding: "0", noNewPrivileges: true };
const NODE = ["null", "log", "pipe", "socket", "eventpoll", "eventfd", "io_uring"];

function component(user: Unprivileged, reaches: string, more: readonly string[] = []): Row {
  return {
    ...NONE,
    user,
    filtered: false,
    oomScore: user === "redis" ? -500 : 0,
    descriptors: [...NODE, ...more],
    reaches,
  };
}

/** Components, by name; `combined` is the process of all but two of them. */
const COMPONENTS: Record<Unprivileged, Row> = {
  api: component(
    "api",
    "callers' requests and credentials, its secrets, Redis, what the others' ports answer",
  ),
  worker: component("worker", "jobs in the queue, its secrets and signing key, Redis, the others' ports"),
  "file-server": component("file-server", "all objects, its secrets, Redis, the others' ports", ["object"]),
  "egress-gateway": component("egress-gateway", "grants, its secrets, Redis, the others' ports"),
  "tool-call-server": component(
    "tool-call-server",
    "tool calls of all programs, its secrets, Redis, the others' ports",
  ),
  runner: component(
    "runner",
    "jaild's socket: programs, their files and outputs of this machine; no secret, no Redis",
    ["input"],
  ),
  combined: component(
    "combined",
    "all that the API, worker, file server, egress gateway and tool call server reach, with the secrets of all five",
    ["object"],
  ),
  redis: component("redis", "the queue and all shared state", ["redis"]),
};

/** The supervisor and what jaild starts. */
const OTHERS = {
  supervisor: {
    oomScore: -500,
    user: "root",
    effective: "all",
    bounding: "all",
    noNewPrivileges: false,
    filtered: false,
    descriptors: [...NODE, "namespace", "stdio"],
    reaches: "the machine; it takes no input but signals",
  },
  jaild: {
    oomScore: -500,
    user: "root",
    effective: "b",
    bounding: "0",
    noNewPrivileges: true,
    filtered: true,
    descriptors: ["null", "log", "pipe", "socket", "namespace", "cgroup", "tools", "memfd", "signalfd"],
    reaches: "files of root, and power over all jails",
  },
  keeper: {
    user: "jaild",
    effective: "b",
    bounding: "0",
    noNewPrivileges: true,
    filtered: true,
    descriptors: [
      "null",
      "log",
      "pipe",
      "socket",
      "namespace",
      "cgroup",
      "memfd",
      "proc",
      "eventpoll",
      "pidfd",
      "jail",
    ],
    reaches: "one run: its frames, files and output",
  },
  zygote: {
    user: "jaild",
    effective: "240000",
    bounding: "240000",
    noNewPrivileges: true,
    filtered: true,
    descriptors: ["null", "pipe", "socket", "cgroup", "namespace"],
    reaches: "the next runs of its kind of interpreter",
  },
  jailed: {
    oomScore: 1000,
    ...NONE,
    user: "slot",
    filtered: true,
    descriptors: ["null", "pipe", "socket", "memfd", "eventpoll", "eventfd"],
    reaches: "its jail",
  },
} as const satisfies Record<string, Row>;

export type Kind = Unprivileged | keyof typeof OTHERS;

export const PRIVILEGES: Record<Kind, Row> = { ...COMPONENTS, ...OTHERS };

/** The rows of a copy of one topology. */
export function kindsOf(topology: "combined" | "separate"): Kind[] {
  const processes = serviceProcesses({ SVC_TOPOLOGY: topology }).filter((name) => name !== "launcher");
  return ["redis", ...processes, ...(Object.keys(OTHERS) as (keyof typeof OTHERS)[])];
}
