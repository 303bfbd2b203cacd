/** Starts the system that test files share, and looks after the last of them that nothing of it is left. */
import type { TestProject } from "vitest/node";
import { OPEN_PROGRAM_LIMITS } from "./open-limits.ts";
import { startSystem } from "./system.ts";

declare module "vitest" {
  interface ProvidedContext {
    sharedSystem: { environment: Readonly<Record<string, string>>; supervisorPid: number };
  }
}

/** Slots for the programs of several files at once. */
export const SHARED_SETTINGS = { ...OPEN_PROGRAM_LIMITS, SANDBOX_MAX_CONCURRENT_JOBS: "8" };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { environment, supervisorPid, stop } = await startSystem({
    env: { ...project.config.env, ...SHARED_SETTINGS },
  });
  project.provide("sharedSystem", { environment, supervisorPid });
  return async () => {
    const left = await stop();
    if (left.length > 0) throw new Error(`left behind: ${left.join("; ")}`);
  };
}
