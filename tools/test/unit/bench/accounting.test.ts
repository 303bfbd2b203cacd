/** Processor time is found whichever process the components run in. This process stands for those of a copy. */
import type { State } from "@svc/cli/supervisor/state";
import { ownIdentity } from "@svc/cli/system/process";
import type { ComponentName } from "@svc/cli/topology";
import { cpuOfComponents } from "@svc/tools/bench/accounting";
import { describe, expect, it } from "vitest";

const BURNT_MS = 200;

const stateOf = (...names: ComponentName[]) =>
  ({ components: names.map((name) => ({ name, process: ownIdentity(), restarts: 0 })) }) as unknown as State;

/** Processor milliseconds that are counted for the components while this process works. */
function countedWhileWorking(state: State, components: readonly ComponentName[]): number {
  const before = cpuOfComponents(state, components);
  const { user } = process.cpuUsage();
  while ((process.cpuUsage().user - user) / 1000 < BURNT_MS);
  return cpuOfComponents(state, components) - before;
}

describe("the processor time of components", () => {
  it("is counted of processes of their own", () => {
    expect(countedWhileWorking(stateOf("api"), ["api"])).toBeGreaterThanOrEqual(BURNT_MS / 2);
  });

  it("is counted of the process that they share, once", () => {
    const shared = stateOf("runner", "combined");
    expect(countedWhileWorking(shared, ["api", "file-server"])).toBeGreaterThanOrEqual(BURNT_MS / 2);
    const one = cpuOfComponents(shared, ["api"]);
    expect(cpuOfComponents(shared, ["api", "file-server", "worker"])).toBeLessThan(1.5 * one);
    expect(cpuOfComponents(shared, ["api", "runner"])).toBeGreaterThanOrEqual(2 * one);
  });

  it("is not guessed of components that do not run", () => {
    expect(() => cpuOfComponents(stateOf("combined"), ["api", "redis"])).toThrow("redis does not run");
  });
});
