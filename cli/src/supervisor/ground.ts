/** Prepares what a copy needs before anything starts: its folders and its ports. */
import { chmodSync, statSync } from "node:fs";
import { type Instance, listenHost, PORTS, SERVICES } from "../instance.ts";
import { Problem } from "../problem.ts";
import type { Environment } from "../settings.ts";
import { demandWritable, makeFolder } from "../system/folders.ts";
import { listenerOf, listenProblem, NO_ADDRESS } from "../system/ports.ts";
import { shown } from "../system/run.ts";

const OTHERS_WRITE = 0o002;

/** The components' users must pass through the data folder to the sockets. Everything else in it is closed to them. */
export function makeFolders(instance: Instance): void {
  const { dataDir, runDir, logsDir } = instance;
  if (makeFolder(dataDir)) chmodSync(dataDir, 0o711);
  demandWritable(dataDir);
  // Root writes to this folder and reads settings from it, so no other user may choose its content.
  if ((statSync(dataDir).mode & OTHERS_WRITE) !== 0)
    throw new Problem(
      `everybody can write to the data folder ${dataDir}`,
      `Run: ${shown(["chmod", "o-w", dataDir])}`,
    );
  for (const [folder, mode] of [
    [runDir, 0o711],
    [logsDir, 0o700],
  ] as const) {
    makeFolder(folder);
    // The folder may belong to root while another user runs this command. So the mode is only set when it differs.
    if ((statSync(folder).mode & 0o777) !== mode) chmodSync(folder, mode);
  }
}

/**
 * Throws a Problem that names each unavailable port of this copy, and the process that holds it. `held`: ports that this copy
 * holds already.
 */
export async function demandFreePorts(
  instance: Instance,
  caller: Environment,
  held: Partial<Instance["ports"]> = {},
): Promise<void> {
  const problems: string[] = [];
  const isHeld = new Set(Object.values(held));
  for (const service of SERVICES) {
    const port = instance.ports[service];
    if (isHeld.has(port)) continue;
    const host = listenHost(service, caller);
    const problem = await listenProblem(host, port);
    if (problem === undefined) continue;
    if (problem !== "EADDRINUSE")
      throw new Problem(`the ${service} cannot listen on ${host} (${problem})`, NO_ADDRESS);
    const owner = listenerOf(port);
    problems.push(
      `port ${port} of the ${service} is taken${owner === undefined ? "" : ` by ${owner}`} (${PORTS[service][0]})`,
    );
  }
  if (problems.length === 0) return;
  throw new Problem(
    problems.join("\n"),
    "Free what is taken, or choose other ports: --port-offset N, or the variables in brackets.",
  );
}
