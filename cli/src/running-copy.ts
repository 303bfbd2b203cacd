/** The copy that a command line means: where it lives, and its state when it runs. */
import { type INSTANCE_OPTIONS, type Instance, resolveInstance, SERVICES } from "./instance.ts";
import type { Values } from "./options.ts";
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";
import { readState, type State } from "./supervisor/state.ts";
import { meanCopy } from "./svc-line.ts";

export interface Copy {
  instance: Instance;
  state: State | undefined;
}

/** The data folder decides which copy is meant. A port offset that does not match that copy is refused, not ignored. */
export function findCopy(values: Values<typeof INSTANCE_OPTIONS>): Copy {
  const instance = resolveInstance(values, process.env);
  const state = readState(instance.runDir);
  const offset = values["port-offset"];
  if (state !== undefined && offset !== undefined && state.ports.api !== instance.ports.api) {
    throw new Problem(
      `--port-offset ${offset} differs from the copy in ${instance.dataDir}, which listens on ${state.url}`,
      "Name the folder of the other copy: --data-dir DIR. Or leave the offset out.",
      USAGE_EXIT_CODE,
    );
  }
  if (state !== undefined && offset === undefined) {
    const ports = SERVICES.map((service) => state.ports[service] - instance.ports[service]);
    const [started = 0] = ports;
    // The copy was started with an offset that this command line does not repeat. Printed commands that start it must have
    // the offset.
    if (started > 0 && ports.every((port) => port === started))
      meanCopy({ ...values, "port-offset": String(started) }, process.env);
  }
  return { instance, state };
}
