import type { System } from "../../e2e/support/system.ts";

/** Our long-lived processes; the jails are not among them. */
export function componentPids(system: Pick<System, "state">, tokenApiPid: number): string[] {
  const components = system.state().components.flatMap(({ process }) => (process ? [process.pid] : []));
  return [...components, tokenApiPid].map(String);
}
