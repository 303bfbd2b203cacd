import { Jaild } from "@svc/test-kit/jail/jaild";
import { compare } from "@svc/test-kit/jail/warm";
import { NAMES } from "@svc/test-kit/jail/zygotes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COLD, SHADOWING } from "../support/python-cold.ts";
import { PROGRAMS } from "../support/python-programs.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 4, zygotes: true });
  await jaild.warm();
});
afterAll(() => jaild.stop());

/** Addresses differ between any two interpreters. */
const withoutAddresses = (text: string) => text.replaceAll(/0x[0-9a-f]{6,}/g, "0x");

describe("a program that starts warm behaves as in a new interpreter", () => {
  it.each(Object.entries(PROGRAMS))("%s", async (_name, job) => {
    const { cold, warm, startedWarm } = await compare(jaild, job);
    for (const name of NAMES) {
      const way = warm[name];
      expect({
        ...way,
        out: withoutAddresses(way?.out ?? ""),
        err: withoutAddresses(way?.err ?? ""),
      }).toEqual({
        ...cold,
        out: withoutAddresses(cold.out),
        err: withoutAddresses(cold.err),
      });
    }
    expect(startedWarm).toEqual(NAMES);
  });
});

describe("what a zygote cannot give starts cold by itself", () => {
  it.each(Object.entries(COLD))("%s", async (_name, job) => {
    const { cold, warm, startedWarm } = await compare(jaild, job);
    for (const name of NAMES) expect(warm[name]).toEqual(cold);
    expect(startedWarm).toEqual([]);
  });

  it.each(SHADOWING)(
    "a module beside it that is named like one of some zygotes: $module, there",
    async ({ job, warmIn }) => {
      const { cold, warm, startedWarm } = await compare(jaild, job);
      for (const name of NAMES) expect(warm[name]).toEqual(cold);
      expect(startedWarm).toEqual(warmIn);
    },
  );
});
