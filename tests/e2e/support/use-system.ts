/** One system for the tests of a block. It must stop without leftovers. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { sharedSystem } from "@svc/test-kit/system/shared";
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

/** A client of a system that keeps paused programs in memory, which all files share, or runs them again from the top. */
export function useSystemOfMode(mode: "live" | "replay", onStart: (api: Api) => void): void {
  if (mode === "replay") useSystem({ ...OPEN_PROGRAM_LIMITS, PTC_MODE: mode }, ({ api }) => onStart(api));
  else beforeAll(() => onStart(new Api(sharedSystem().url)));
}
