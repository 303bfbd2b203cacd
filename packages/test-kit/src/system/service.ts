/**
 * The service for tests that know it by its public API alone: `./svc up`, or the containers of deploy/compose.yaml where the setup of
 * the project says so (containers/shared-setup.ts).
 */
import type { ComponentName } from "@svc/cli/topology";
import { inject } from "vitest";
import { asUpWould, type Compose, startCompose } from "../containers/compose.ts";
import type {} from "../containers/shared-setup.ts";
import { startSystem } from "./system.ts";

export interface Service {
  /** Address of the public API, with /v1. */
  url: string;
  /** Pid of the process that runs a component. */
  pid: (name: ComponentName) => number;
  /** Ends it and answers what is left. */
  stop: () => Promise<string[]>;
}

/** `env`: settings. Settles when it is ready. Containers take minutes: those that all files share serve whoever sets what they set. */
export async function startService(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const shared = inject("containers");
  if (shared === undefined) return startSystem({ env });
  const isServed = Object.entries(env).every(([name, value]) => shared.settings[name] === value);
  // Their setup says what they leave.
  if (isServed) return { url: shared.url, pid: notShared, stop: async () => [] };
  return startContainers(asUpWould(env));
}

function notShared(name: string): never {
  throw new Error(`${name} is shared: a test that does more than call it has settings of its own`);
}

/** Containers of their own beside those that all files share. */
export function startContainers(settings: Readonly<Record<string, string>>): Promise<Compose> {
  return startCompose(settings, inject("containers")?.mountsOf);
}
