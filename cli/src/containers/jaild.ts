/** Turns this process into jaild, with the options that `./svc up` gives it. */
import { execve } from "node:process";
import { JAILD, JAILD_ENVIRONMENT, jaildCommand } from "../components.ts";
import type { Environment } from "../settings.ts";
import { findJailsGroup } from "../system/jails-group.ts";
import { containerInstance } from "./place.ts";

/** The runner's container has a user of its own, like components that `./svc up` gives users of their own. */
const VIEW = { enter: [], close: () => undefined };

/**
 * The process must be alone in its control group. It moves itself into a subgroup, so that the groups of the jails can lie
 * beside it.
 */
export function becomeJaild(env: Environment): never {
  const instance = containerInstance(env);
  const jailsGroup = findJailsGroup({ mayMove: true });
  const command = jaildCommand({ instance, caller: env, view: VIEW, jailsGroup });
  return execve?.(JAILD, command, JAILD_ENVIRONMENT) as never;
}
