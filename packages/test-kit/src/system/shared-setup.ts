/** Starts the system that test files share, and looks after the last of them that nothing of it is left. */
import type { TestProject } from "vitest/node";
import { areInContainers } from "../containers/system.ts";
import { OPEN_PROGRAM_LIMITS } from "./open-limits.ts";
import { startSystem } from "./system.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** `url`: of a system in containers, of which nothing else is known. */
    sharedSystem: { environment: Readonly<Record<string, string>>; supervisorPid: number; url?: string };
  }
}

/** Slots for the programs of several files at once. */
const ENV = { ...OPEN_PROGRAM_LIMITS, SANDBOX_MAX_CONCURRENT_JOBS: "8" };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const system = await startSystem({ env: ENV });
  if (areInContainers())
    project.provide("sharedSystem", { environment: {}, supervisorPid: 0, url: system.url });
  else
    project.provide("sharedSystem", { environment: system.environment, supervisorPid: system.supervisorPid });
  return async () => {
    const left = await system.stop();
    if (left.length > 0) throw new Error(`left behind: ${left.join("; ")}`);
  };
}
