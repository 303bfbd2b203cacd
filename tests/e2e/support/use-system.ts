/** One system for the tests of a block. It must stop without leftovers. */
import { afterAll, beforeAll, expect } from "vitest";
import { Api } from "./api.ts";
import { type System, startSystem } from "./system.ts";

/** `onStart` is called before the first test, with the system and a client of it. */
export function useSystem(
  env: Readonly<Record<string, string>>,
  onStart: (made: { system: System; api: Api }) => void,
): void {
  let system: System | undefined;
  beforeAll(async () => {
    system = await startSystem({ env });
    onStart({ system, api: new Api(system.url) });
  });
  afterAll(async () => {
    expect(await system?.stop()).toEqual([]);
  });
}
