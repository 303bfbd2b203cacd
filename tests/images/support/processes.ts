/** What the kernel says of the first process of a container, seen from the host. */
import { readFileSync } from "node:fs";
import type { Compose } from "@svc/test-kit/containers/compose";

export interface Seen {
  /** Real, effective, saved and filesystem id. */
  uids: string[];
  gids: string[];
  /** Hexadecimal sets: effective, permitted, bounding. */
  effective: string;
  permitted: string;
  bounding: string;
  noNewPrivileges: string;
  /** 2: a filter. */
  seccomp: string;
  /** Options of the mount on /. */
  rootOptions: string[];
}

export function processOf(compose: Compose, service: string): Seen {
  const pid = compose.pid(service);
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => new RegExp(`^${name}:\t(.*)$`, "m").exec(status)?.[1]?.split("\t") ?? [];
  const one = (name: string) => field(name)[0] ?? "";
  const mounts = readFileSync(`/proc/${pid}/mounts`, "utf8")
    .split("\n")
    .map((line) => line.split(" "));
  return {
    uids: field("Uid"),
    gids: field("Gid"),
    effective: one("CapEff"),
    permitted: one("CapPrm"),
    bounding: one("CapBnd"),
    noNewPrivileges: one("NoNewPrivs"),
    seccomp: one("Seccomp"),
    rootOptions: mounts.find(([, place]) => place === "/")?.[3]?.split(",") ?? [],
  };
}

/** Numbers of capabilities, of include/uapi/linux/capability.h. */
const NUMBERS = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
  MKNOD: 27,
} as const;

/** The set as /proc has it. */
export const setOf = (...names: (keyof typeof NUMBERS)[]): string =>
  names
    .reduce((set, name) => set | (1n << BigInt(NUMBERS[name])), 0n)
    .toString(16)
    .padStart(16, "0");
