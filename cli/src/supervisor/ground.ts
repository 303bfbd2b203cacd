/** What a copy stands on before anything is started: its folders and its ports. */
import { chmodSync, mkdirSync } from "node:fs";
import { type Instance, PORTS, SERVICES } from "../instance.ts";
import { Problem } from "../problem.ts";
import { listenerOf, portIsFree } from "../system/ports.ts";

/** The components' users pass through the data folder to the sockets; everything else in it is closed to others. */
export function makeFolders(instance: Instance): void {
  const { dataDir, runDir, logsDir } = instance;
  if (mkdirSync(dataDir, { recursive: true }) !== undefined) chmodSync(dataDir, 0o711);
  for (const [folder, mode] of [
    [runDir, 0o711],
    [logsDir, 0o700],
  ] as const) {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, mode);
  }
}

/** Throws a Problem that names who holds a port of this copy. */
export async function demandFreePorts(instance: Instance, caller: NodeJS.ProcessEnv): Promise<void> {
  for (const service of SERVICES) {
    const port = instance.ports[service];
    const host = (service === "api" && caller.SERVICE_HOST) || "127.0.0.1";
    if (await portIsFree(host, port)) continue;
    const owner = listenerOf(port);
    throw new Problem(
      `port ${port} of the ${service} is taken${owner === undefined ? "" : ` by ${owner}`}`,
      `Free it, or choose others: --port-offset N, or ${PORTS[service][0]}=PORT.`,
    );
  }
}
