/** The system that all tests of this project share, and its callers. */
import { readState } from "@svc/cli/supervisor/state";
import { inject } from "vitest";
import type { System } from "../../e2e/support/system.ts";
import { ATTACKER, BYSTANDER, type Identity, NEIGHBOUR, PrincipalApi } from "./principals.ts";
import type {} from "./setup.ts";

export const running = inject("escapeSystem");

export const system: Pick<System, "instance" | "supervisorPid" | "state" | "pid" | "url"> = {
  instance: running.instance,
  supervisorPid: running.supervisorPid,
  url: running.url,
  state: () => {
    const state = readState(running.instance.runDir);
    if (state === undefined) throw new Error("the system does not run");
    return state;
  },
  pid: (name) => {
    const component = system.state().components.find((candidate) => candidate.name === name);
    if (component?.process === undefined) throw new Error(`${name} does not run`);
    return component.process.pid;
  },
};

export const principal = (identity: Identity) =>
  new PrincipalApi(running.tokenUrl, running.signingKey, identity);
export const attacker = principal(ATTACKER);
export const neighbour = principal(NEIGHBOUR);
export const bystander = principal(BYSTANDER);
