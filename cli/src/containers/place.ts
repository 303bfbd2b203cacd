/** Where things are in a container: at the places that the configuration names by default. */
import type { Instance } from "../instance.ts";
import { resolveInstance } from "../instance.ts";
import { type Environment, settingOf } from "../settings.ts";

/** As `./svc up` has it, but for what its copies have in the data folder. */
export function containerInstance(env: Environment): Instance {
  const jobUidBase = settingOf("SANDBOX_JOB_UID_BASE", env);
  const jobGidBase = settingOf("SANDBOX_JOB_GID_BASE", env);
  return {
    ...resolveInstance({}, env),
    image: settingOf("SANDBOX_PACKAGES_DIRECTORY", env),
    jailSocket: settingOf("SANDBOX_JAIL_SOCKET", env),
    toolDirectory: settingOf("SANDBOX_TOOL_DIRECTORY", env),
    jobUidBase,
    jobGidBase,
  };
}
