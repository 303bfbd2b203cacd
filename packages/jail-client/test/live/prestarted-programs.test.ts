import { Jaild } from "@svc/test-kit/jail/jaild";
import type { Way } from "@svc/test-kit/jail/warm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COLD, MODULES, SCRIPTS, TYPED } from "../support/node-programs.ts";
import { comparePrestarted } from "../support/prestarted.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 4, zygotes: false });
}, 90_000);
afterAll(() => jaild.stop());

/** Of V8's last words the times, addresses and frames differ between any two processes. */
const said = ({ err, ...way }: Way) => ({ ...way, err: /^FATAL ERROR: .*$/m.exec(err)?.[0] ?? err });

describe.each([
  ["script", SCRIPTS],
  ["module", MODULES],
  ["TypeScript program", TYPED],
])("a %s that starts in a pre-started Node behaves as in a new one", (_kind, programs) => {
  it.each(Object.entries(programs))("%s", async (name, job) => {
    const { cold, warm, startedWarm } = await comparePrestarted(jaild, job);
    expect(said(warm)).toEqual(said(cold));
    expect(startedWarm, name).toBe(true);
  });
});

describe("what a pre-started Node cannot be starts cold by itself", () => {
  it.each(Object.entries(COLD))("%s", async (name, job) => {
    const { cold, warm, startedWarm } = await comparePrestarted(jaild, job);
    expect(warm).toEqual(cold);
    // That the entry file is missing is noticed by Node itself.
    expect(startedWarm).toBe(name === "no entry file");
  });
});
