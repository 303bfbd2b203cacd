/** Options that stand for a setting in one command line. They override the environment and are not stored. */
import { adoptSettings, type Settings } from "./sources.ts";

export interface Switches {
  sessions?: boolean | undefined;
  microvm?: boolean | undefined;
}

/** Also adds the settings to the environment of this process. */
export function withSwitches(settings: Settings, { sessions, microvm }: Switches): Settings {
  if (!sessions && !microvm) return settings;
  const switched = {
    ...(sessions ? { SVC_PERSIST_SESSIONS: "true" } : {}),
    ...(microvm ? { KVM_ENABLED: "true" } : {}),
  };
  const chosen = { ...settings, values: { ...settings.values, ...switched } };
  adoptSettings(chosen);
  return chosen;
}
