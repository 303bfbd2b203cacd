import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Instance } from "../instance.ts";
import { removeCgroups, removeLaunchersCgroups } from "../system/cgroups.ts";
import { removeState } from "./state.ts";

/** Removes sockets, pid files, links and cgroups of a copy that does not run. */
export function removeLeftovers(instance: Instance): void {
  removeState(instance.runDir);
  for (const name of readdirSync(instance.runDir)) {
    if (/\.(pid|sock|new)$|^(redis-server|compile-cache|api-keys\.jsonl|settings\.json)$/.test(name)) {
      rmSync(join(instance.runDir, name), { recursive: true, force: true });
    }
  }
  removeSocketFolder(instance);
  removeCgroups(instance.cgroup);
  removeLaunchersCgroups();
}

/** The folder belongs to Redis's user. So only the socket is removed from it, by its name. */
function removeSocketFolder({ redisSocket }: Instance): void {
  const folder = dirname(redisSocket);
  rmSync(redisSocket, { force: true });
  if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder);
}
