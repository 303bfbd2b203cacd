/**
 * Starts the containers that test files share, in the place of shared-setup.ts of processes: the same files call them by the same
 * address. Those with settings of their own start containers of their own (system/service.ts).
 */
import type { TestProject } from "vitest/node";
import { SHARED_SETTINGS } from "../system/shared-setup.ts";
import { asUpWould, startCompose } from "./compose.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Undefined where the service runs in processes. */
    containers?: {
      /** With /v1. */
      url: string;
      settings: Readonly<Record<string, string>>;
      /** For others that are started beside them (podman.ts). */
      mountsOf: number | undefined;
    };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { url, stop, mountsOf } = await startCompose(asUpWould(SHARED_SETTINGS));
  // What a caller of this address would set; there is no supervisor whose state could be asked.
  project.provide("sharedSystem", { environment: { SERVICE_PORT: new URL(url).port }, supervisorPid: 0 });
  project.provide("containers", { url, settings: SHARED_SETTINGS, mountsOf });
  return async () => {
    const left = await stop();
    if (left.length > 0) throw new Error(`left behind: ${left.join("; ")}`);
  };
}
