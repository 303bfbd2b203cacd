/**
 * One system for all test files that need no settings of their own and change nothing that others would notice: it is
 * started before the first file of the project and ended after the last (shared-setup.ts).
 */
import { type Instance, resolveInstance } from "@svc/cli/instance";
import { readState } from "@svc/cli/supervisor/state";
import { runsIn } from "@svc/cli/topology";
import { inject } from "vitest";
import type {} from "./shared-setup.ts";
import type { System } from "./system.ts";

/** A running copy that somebody else started and will end. */
export type AttachedSystem = Pick<System, "instance" | "supervisorPid" | "state" | "pid" | "url">;

export function attach(instance: Instance, supervisorPid: number): AttachedSystem {
  const state = () => {
    const current = readState(instance.runDir);
    if (current === undefined) throw new Error("the system does not run");
    return current;
  };
  return {
    instance,
    supervisorPid,
    url: `${instance.url}/v1`,
    state,
    pid: (name) => {
      const component = state().components.find((candidate) => runsIn(candidate.name, name));
      if (component?.process === undefined) throw new Error(`${name} does not run`);
      return component.process.pid;
    },
  };
}

export function sharedSystem(): AttachedSystem & Pick<System, "environment"> {
  const { environment, supervisorPid } = inject("sharedSystem");
  const none = { "data-dir": undefined, "port-offset": undefined };
  const instance = resolveInstance(none, { ...process.env, ...environment });
  return { ...attach(instance, supervisorPid), environment };
}
