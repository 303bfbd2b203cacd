/**
 * The users of the processes: one user id each, below the ids of the slots. Only the supervisor, jaild and the launcher run
 * as root. The processes that use Redis share its group, and only this group can reach the Redis socket. No process is in
 * any other group. Pure.
 */
import type { Instance } from "./instance.ts";
import type { ComponentName } from "./topology.ts";

export interface User {
  uid: number;
  gid: number;
}

/**
 * The position in this list is how far below the base a component's ids are. Only append, because files belong to these ids.
 */
const ORDER = [
  "runner",
  "redis",
  "api",
  "worker",
  "file-server",
  "egress-gateway",
  "tool-call-server",
] as const satisfies readonly ComponentName[];
export type Unprivileged = (typeof ORDER)[number] | "combined";

/** Objects keep their owner in each topology, so the process `combined` has the file server's user. */
const OWNER_OF_OBJECTS = "file-server";

/** The id of Redis's group lies below the components' own ids. */
const REDIS_GROUP = ORDER.length + 1;

export function isUnprivileged(name: ComponentName): name is Unprivileged {
  return name === "combined" || (ORDER as readonly ComponentName[]).includes(name);
}

export function userOf(name: Unprivileged, { jobUidBase, jobGidBase }: Instance): User {
  const below = ORDER.indexOf(name === "combined" ? OWNER_OF_OBJECTS : name) + 1;
  return { uid: jobUidBase - below, gid: jobGidBase - (name === "runner" ? below : REDIS_GROUP) };
}

/**
 * The words that turn root into this user for good: no capability, no way to get one, no supplementary group. The process
 * gets the signal when the supervisor is gone, for whatever reason. setpriv becomes the program that follows.
 */
export function confined(signal: "KILL" | "TERM", user: User | undefined): string[] {
  const unprivileged =
    user === undefined
      ? []
      : [
          `--reuid=${user.uid}`,
          `--regid=${user.gid}`,
          "--clear-groups",
          "--no-new-privs",
          "--inh-caps=-all",
          "--bounding-set=-all",
        ];
  return ["/usr/bin/setpriv", "--pdeathsig", signal, ...unprivileged, "--"];
}
