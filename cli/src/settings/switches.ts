/** Options that stand for a setting of one command line. They are above the environment, and are not remembered. */
import { adoptSettings, type Settings } from "./sources.ts";

export interface Switches {
  sessions?: boolean | undefined;
  microvm?: boolean | undefined;
}

/** Gives them to this process, too. */
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
