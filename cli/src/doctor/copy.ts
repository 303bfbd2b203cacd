/** Checks the running copy: its components, their users, the limits over all jails, and entries that are new in /proc. */

import { existsSync, mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { bundleOf } from "../components.ts";
import type { Instance } from "../instance.ts";
import { componentHealth } from "../readiness.ts";
import { settingOf } from "../settings.ts";
import { tryConfinement } from "../supervisor/confinement.ts";
import { logPath } from "../supervisor/logs.ts";
import { readState, type State } from "../supervisor/state.ts";
import { startAgain, svcLine } from "../svc-line.ts";
import { findCgroups, findGuestsCgroups } from "../system/cgroups.ts";
import { entriesOfProc } from "../system/process.ts";
import { isRoot } from "../system/root.ts";
import { times } from "../terminal.ts";
import { runsIn } from "../topology.ts";
import { problemOf } from "../unexpected.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

export async function running(instance: Instance): Promise<Finding[]> {
  const state = readState(instance.runDir);
  if (state === undefined) return [ok("service", `not running (${svcLine("up")} starts it)`)];
  const health = await componentHealth({ ...instance, url: state.url, ports: state.ports }, state.components);
  return [
    ...health.map(([name, reason]) => {
      const restarts = state.components.find((process) => runsIn(process.name, name))?.restarts ?? 0;
      return healthFinding(name, { reason, restarts, log: logPath(instance.logsDir, name) });
    }),
    limits(state),
    procEntries(state.procEntries, entriesOfProc()),
  ];
}

/** `reason`: what is wrong with it. */
export function healthFinding(
  name: string,
  { reason, restarts, log }: { reason: string | undefined; restarts: number; log: string },
): Finding {
  if (reason !== undefined) return fail(name, reason, `See ${log}`);
  return ok(name, restarts > 0 ? `healthy, started again ${times(restarts)}` : "healthy");
}

/** Checks whether each component can have a user of its own, or, when the copy runs, whether it has one. */
export async function users(instance: Instance): Promise<Finding[]> {
  const state = readState(instance.runDir);
  if (state !== undefined) return [userFinding(state)];
  if (!isRoot()) return [warn("users", "can only be tried by root", `Run ${svcLine("doctor")} as root.`)];
  if (!existsSync(bundleOf("api"))) return [ok("users", "the components are not built yet")];
  const stage = mkdtempSync(join(tmpdir(), "svc-doctor-"));
  try {
    await tryConfinement(instance, process.env, join(stage, "view"));
    return [ok("users", "every process can have one of its own")];
  } catch (error) {
    const { message, advice = "See docs/troubleshooting.md." } = problemOf(error);
    const grade = settingOf("SVC_ALLOW_PRIVILEGED_COMPONENTS", process.env) ? warn : fail;
    return [grade("users", message, advice)];
  } finally {
    rmdirSync(stage);
  }
}

export function userFinding({ unprivileged }: Pick<State, "unprivileged">): Finding {
  return unprivileged
    ? ok("users", "every process has one of its own")
    : warn(
        "users",
        "the components run as root (SVC_ALLOW_PRIVILEGED_COMPONENTS)",
        `Without this variable the start tells what is in the way: ${startAgain()}.`,
      );
}

/** Limits as the kernel's files show them; undefined when there is no such file. */
interface GroupLimits {
  memory?: string;
  pids?: string;
}

/** The limits over all jails together. For microVMs, the limits of each one: the launcher only starts as many as fit. */
function limits({ cgroup, components }: State): Finding {
  const launcher = components.find(({ name }) => name === "launcher");
  // In cgroup version 2 the limits are on a group below jaild's own.
  if (launcher === undefined)
    return groupLimits(limitsOf(findCgroups(cgroup).flatMap((own) => [own, join(own, "jails")])));
  const folders = launcher.process === undefined ? [] : findGuestsCgroups(launcher.process.pid);
  const guests = [...new Set(folders.map((folder) => basename(folder)))];
  return guestLimits(guests.map((guest) => limitsOf(folders.filter((folder) => basename(folder) === guest))));
}

function limitsOf(folders: readonly string[]): GroupLimits {
  const found: GroupLimits = {};
  for (const folder of folders) {
    for (const [name, kind] of [
      ["memory.max", "memory"],
      ["memory.limit_in_bytes", "memory"],
      ["pids.max", "pids"],
    ] as const) {
      if (existsSync(join(folder, name))) found[kind] = readFileSync(join(folder, name), "utf8").trim();
    }
  }
  return found;
}

/** Above any real limit. A group of version 1 without a memory limit shows the largest number of whole pages. */
const NO_LIMIT = 2 ** 62;

function openOnes({ memory, pids }: GroupLimits): string[] {
  const isOpen = (limit: string | undefined) =>
    limit === undefined || limit === "max" || Number(limit) >= NO_LIMIT;
  return [...(isOpen(memory) ? ["memory"] : []), ...(isOpen(pids) ? ["processes"] : [])];
}

export function groupLimits(found: GroupLimits): Finding {
  const open = openOnes(found);
  return open.length === 0
    ? ok("limits", `all jails together: ${found.memory} bytes, ${found.pids} processes`)
    : warn("limits", `none over all jails together: ${open.join(", ")}`, `${startAgain()} sets them.`);
}

export function guestLimits(guests: readonly GroupLimits[]): Finding {
  const [guest] = guests;
  if (guest === undefined) return ok("limits", "no microVM runs at this moment");
  const open = [...new Set(guests.flatMap(openOnes))];
  return open.length === 0
    ? ok("limits", `each microVM: ${guest.memory} bytes, ${guest.pids} processes`)
    : warn("limits", `none for a microVM: ${open.join(", ")}`, `${startAgain()} sets them.`);
}

/** Jails hide the entries of /proc that existed when the jails were prepared. A kernel module may add others. */
export function procEntries(known: readonly string[], now: readonly string[]): Finding {
  const added = now.filter((name) => !known.includes(name));
  return added.length === 0
    ? ok("proc entries", "as when it was started")
    : warn(
        "proc entries",
        `new since the start, so runs may see them: ${added.join(", ")}`,
        `${startAgain()}.`,
      );
}
