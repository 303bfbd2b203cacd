/**
 * The system as a user starts it, for tests: `./svc up` on free ports with a data folder of its own. `stop` ends it and
 * answers what it left on the machine: an empty list when all is well.
 */

import { holdNamespaces, leftovers, takeBaseline } from "./leftovers.ts";
import { type PrivateCopy, type PrivateCopyOptions, startPrivateCopy } from "./private-copy.ts";

export interface System extends Omit<PrivateCopy, "stop"> {
  stop: () => Promise<string[]>;
}

export async function startSystem(options: PrivateCopyOptions = {}): Promise<System> {
  const baseline = takeBaseline();
  const copy = await startPrivateCopy(options).catch((error: Error & { advice?: string }) => {
    throw new Error(`${error.message}\n${error.advice ?? ""}`, { cause: error });
  });
  let stopped: Promise<string[]> | undefined;
  const stop = async () => {
    const namespaces = holdNamespaces(copy.instance, baseline);
    const code = await copy.stop();
    const left = leftovers(copy.instance, baseline, namespaces.names);
    namespaces.release();
    return code === 0 ? left : [...left, `exit code ${code} of ./svc up: ${copy.output()}`];
  };
  return {
    ...copy,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
