/** The system that all tests of this project share, and its callers. */

import { attach } from "@svc/test-kit/system/shared";
import { inject } from "vitest";
import { ATTACKER, BYSTANDER, type Identity, NEIGHBOUR, PrincipalApi } from "./principals.ts";
import type {} from "./setup.ts";

export const running = inject("escapeSystem");

export const system = attach(running.instance, running.supervisorPid);

export const principal = (identity: Identity) =>
  new PrincipalApi(running.tokenUrl, running.signingKey, identity);
export const attacker = principal(ATTACKER);
export const neighbour = principal(NEIGHBOUR);
export const bystander = principal(BYSTANDER);
