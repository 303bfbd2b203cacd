import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { JailRun } from "../../src/index.ts";
import { until } from "../support/host.ts";
import { Jaild } from "../support/jaild.ts";
import { stage } from "../support/run.ts";

const folder = fileURLToPath(new URL("../../../../jail", import.meta.url));
const steps = [...readFileSync(`${folder}/src/step.h`, "utf8").matchAll(/X\((\w+), "(.*)"\)/g)].map(
  ([, name = "", text = ""], index) => ({ name, text, number: index + 1 }),
);
/** Steps that are taken when the job is there; all others belong to the preparation. */
const LATE = ["JOB", "RUN_LIMITS"];

let jaild: Jaild | undefined;
beforeAll(() => {
  execFileSync("make", ["-C", folder, "faults"], { stdio: "ignore" });
}, 120_000);
afterEach(() => jaild?.stop());

const faulty = (step: number) =>
  Jaild.start({ slots: 1, binary: `${folder}/build/jaild-faults`, args: ["--fail-step", `${step}`] });

describe("a step of the preparation that fails", () => {
  it("is one of a known list", () => {
    expect(steps.length).toBeGreaterThan(25);
  });

  it.each(steps.filter(({ name }) => !LATE.includes(name)))(
    "$name: no client ever meets the jail",
    async (step) => {
      jaild = await faulty(step.number);
      await until(
        () => jaild?.log.includes(`cannot ${step.text}`) === true,
        `the log names the step: ${step.text}`,
      );
      const signal = AbortSignal.timeout(150);
      await expect(JailRun.open(jaild.socket, signal)).rejects.toThrow();
      await jaild.kill("SIGTERM");
      expect(jaild.groups).toEqual([]);
    },
  );

  it.each(steps.filter(({ name }) => LATE.includes(name)))(
    "$name: the client is told that nothing ran",
    async (step) => {
      jaild = await faulty(step.number);
      const run = await stage(jaild, { argv: ["/bin/true"] });
      await expect(run.start()).rejects.toMatchObject({
        kind: "setup",
        started: false,
        message: expect.stringContaining(step.text),
      });
      run.close();
    },
  );
});
