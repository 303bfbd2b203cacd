/** The paths in a container: the defaults of the configuration. */
import type { Instance } from "../instance.ts";
import { resolveInstance } from "../instance.ts";
import { type Environment, settingOf } from "../settings.ts";

/** The instance of `./svc up`, except for the paths and ids that a local copy derives from its data folder. */
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
