/** How SVC_TOPOLOGY assigns the services to processes. Pure. */
import { SERVICES, type Service } from "./instance.ts";
import { type Environment, settingOf } from "./settings.ts";

/** The components that share the process `combined`, in the order in which they stop (services/combined). */
export const COMBINED = [
  "api",
  "worker",
  "egress-gateway",
  "tool-call-server",
  "file-server",
] as const satisfies readonly Service[];

/** A process that runs one service, or several. */
export type ServiceProcess = Service | "combined" | "launcher";
export type ComponentName = ServiceProcess | "redis" | "jaild";

/** The processes of both topologies. They are built together, so that either topology can be started. */
export const SERVICE_PROCESSES: readonly ServiceProcess[] = [...SERVICES, "combined", "launcher"];

/** Whether microVMs are used. The launcher then replaces the runner, and each microVM has a runner and jaild of its own. */
export function usesMicrovms(caller: Environment): boolean {
  return settingOf("KVM_ENABLED", caller);
}

export function serviceProcesses(caller: Environment): readonly ServiceProcess[] {
  const processes: readonly ServiceProcess[] =
    settingOf("SVC_TOPOLOGY", caller) === "combined" ? ["runner", "combined"] : SERVICES;
  return usesMicrovms(caller) ? processes.map((name) => (name === "runner" ? "launcher" : name)) : processes;
}

/** The components that run in a process. */
export function componentsIn<Name extends ComponentName>(
  process: Name,
): readonly (Exclude<Name, "combined"> | (typeof COMBINED)[number])[] {
  return process === "combined" ? COMBINED : [process as Exclude<Name, "combined">];
}

/** Whether the component runs in the process. A process also counts as running itself. */
export function runsIn(process: ComponentName, component: ComponentName): boolean {
  return process === component || (componentsIn(process) as readonly ComponentName[]).includes(component);
}

/** Names of the logs of a process: its own output first, then the logs of its components when there are several. */
export function logsOf(process: ComponentName): readonly ComponentName[] {
  return process === "combined" ? [process, ...COMBINED] : [process];
}
