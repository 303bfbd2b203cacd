/** One system for the tests of a block. It must stop without leftovers. */

import { Api } from "@svc/test-kit/system/api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect } from "vitest";

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
