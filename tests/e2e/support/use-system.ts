/** One system for the tests of a block. It must stop without leftovers. Tests that know it by its API run in containers, too. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect } from "vitest";

/** `onStart` is called before the first test, with the system and a client of it. */
export function useSystem(
  env: Readonly<Record<string, string>>,
  onStart: (made: { system: System; api: Api }) => void,
): void {
  use(() => startSystem({ env }), onStart);
}

function use<Started extends Service>(
  start: () => Promise<Started>,
  onStart: (made: { system: Started; api: Api }) => void,
): void {
  let system: Started | undefined;
  beforeAll(async () => {
    system = await start();
    onStart({ system, api: new Api(system.url) });
  });
  afterAll(async () => {
    expect(await system?.stop()).toEqual([]);
  });
}

/** A client of a system that keeps paused programs in memory, which all files share, or runs them again from the top. */
export function useSystemOfMode(mode: "live" | "replay", onStart: (api: Api) => void): void {
  const start = () => startService({ ...OPEN_PROGRAM_LIMITS, PTC_MODE: mode });
  if (mode === "replay") use(start, ({ api }) => onStart(api));
  else beforeAll(() => onStart(new Api(sharedSystem().url)));
}
