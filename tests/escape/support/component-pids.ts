import type { System } from "@svc/test-kit/system/system";

/** Our long-lived processes; neither the jails nor Redis, which keeps ended jobs for two minutes, are among them. */
export function componentPids(system: Pick<System, "state">, tokenApiPid: number): string[] {
  const components = system
    .state()
    .components.flatMap(({ name, process }) => (process && name !== "redis" ? [process.pid] : []));
  return [...components, tokenApiPid].map(String);
}
